"""Conversion between the layouts of `transformers`, OpenAI, open_clip and `timm`."""

import numpy as np
import pytest
from tests.backbones import tiny
from tests.backbones.layout_files import openai_state, timm_siglip_state

from wordreel.backbones.layouts import to_huggingface, to_openai


def same(first, second):
    assert set(first) == set(second)
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)


@pytest.mark.parametrize("name", ["clip", "pe-core"])
@pytest.mark.parametrize("prefix", ["", "text."])
def test_openais_layout_goes_both_ways(name, prefix):
    state = tiny.random_state(tiny.ALL[name])
    theirs = openai_state(state, prefix)
    same(to_huggingface(theirs), state)
    same(to_openai(state), openai_state(state))
    same(to_openai(theirs), openai_state(state))
    same(to_huggingface(state), state)


def test_wrappers_and_buffers_are_left_out():
    state = tiny.random_state(tiny.CLIP)
    theirs = {f"module.{key}": value for key, value in openai_state(state).items()}
    buffers = {"module.attn_mask": np.zeros((9, 9)), "module.context_length": np.array(9)}
    same(to_huggingface({**theirs, **buffers}), state)


def test_timms_layout_becomes_that_of_transformers():
    state = tiny.random_state(tiny.SIGLIP)
    theirs = timm_siglip_state(state)
    assert "visual.trunk.attn_pool.kv.weight" in theirs
    same(to_huggingface(theirs), {key: value for key, value in state.items() if key != "logit_scale"})


def test_a_biased_projection_goes_back_to_openais_names():
    state = tiny.random_state(tiny.SIGLIP)
    theirs = to_openai(state)
    np.testing.assert_array_equal(theirs["text_projection.bias"], state["text_model.head.bias"])
    same(to_huggingface(theirs), state)


def test_unknown_names_stay_for_the_check_to_name():
    theirs = {"visual.trunk.stem.weight": np.zeros(1), "visual.layer4.weight": np.zeros(1)}
    assert set(to_huggingface(theirs)) == set(theirs)
