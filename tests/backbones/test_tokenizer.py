"""Token ids from a `tokenizer.json`."""

import gzip

import numpy as np
import pytest
from tests.tiny_backbone import MERGES, VOCABULARY

from wordreel.backbones.config import TextSettings
from wordreel.backbones.tokenizer import (
    CLIP_VOCABULARY,
    MAX_CHARACTERS,
    TextTokenizer,
    convert,
    open_tokenizer,
    tokenizer_json,
)
from wordreel.errors import WeightsError, WeightsMissing
from wordreel.runtime.store import WeightStore

START, END = VOCABULARY - 2, VOCABULARY - 1
CONTENT = tokenizer_json([merge.split(" ") for merge in MERGES])
TOKENS = open_tokenizer(CONTENT)


def tokenizer(**settings):
    return TextTokenizer(CONTENT, TextSettings(**{"length": 8, **settings}))


def ids(*tokens):
    return [TOKENS.token_to_id(token) for token in tokens]


def test_marks_padding_and_case():
    found, mask = tokenizer(padding=3).encode(["The  red\nCAT", ""])
    assert found[0].tolist() == [START, *ids("the</w>", "red</w>", "cat</w>"), END, 3, 3, 3]
    assert mask[0].tolist() == [True] * 5 + [False] * 3
    assert found[1].tolist() == [START, END, 3, 3, 3, 3, 3, 3]
    assert tokenizer().vocabulary == VOCABULARY


def test_a_text_that_is_too_long_keeps_its_end():
    found, mask = tokenizer().encode(["red " * 50])
    assert found[0].tolist() == [START, *ids("red</w>") * 6, END]
    assert mask.all()
    assert tokenizer().encode(["red"], 3)[0].tolist() == [[START, *ids("red</w>"), END]]
    assert tokenizer().encode(["x" * (MAX_CHARACTERS + 1), "\ud800"])[0].shape == (2, 8)


def test_ids_as_long_as_the_longest():
    assert tokenizer(shorter=True).encode(["red cat", "dog"])[0].shape == (2, 4)
    assert tokenizer(shorter=True).encode([])[0].shape == (0, 1)


def test_what_is_typed_is_never_a_special_token():
    found, _ = tokenizer(length=30).encode(["<|endoftext|> cat"])
    assert (found[0] == END).sum() == 1
    assert (found[0] == START).sum() == 1


def test_punctuation_goes_where_the_model_was_trained_so():
    plain = tokenizer().encode(["the red cat"])[0]
    np.testing.assert_array_equal(tokenizer(canonicalize=True).encode(["The_red, CAT!"])[0], plain)


def test_damaged_files():
    for content in ("", "{}", CONTENT[:-100], "[" * 3000):
        with pytest.raises(WeightsError, match="the tokenizer is damaged"):
            TextTokenizer(content, TextSettings())


def test_a_bang_inside_a_word_is_token_0_and_is_no_padding():
    found, mask = tokenizer().encode(["a!b"])
    assert 0 in found[0][mask[0]].tolist() or found[0][2] == ids("!</w>")[0]
    found, mask = tokenizer().encode(["!!"])
    assert found[0][:4].tolist() == [START, 0, *ids("!</w>"), END]
    assert mask[0][:4].all()


def test_the_vocabulary_is_made_of_a_list_of_merges(tmp_path):
    lines = "\n".join(["#version", *MERGES, "", "beyond"])
    with gzip.open(tmp_path / "merges.txt.gz", "wt", encoding="utf-8") as file:
        file.write(lines[: lines.index("\n\nbeyond")])
    convert({"merges": tmp_path / "merges.txt.gz"}, tmp_path)
    assert (tmp_path / "tokenizer.json").read_text(encoding="utf-8") == CONTENT


def test_openais_ids():
    try:
        content = WeightStore().file(CLIP_VOCABULARY).read_text(encoding="utf-8")
    except WeightsMissing:
        pytest.skip("wordreel weights fetch clip-vocabulary")
    found, _ = TextTokenizer(content, TextSettings(shorter=True)).encode(["A photo of a cat, isn't it?"])
    assert found[0].tolist() == [49406, 320, 1125, 539, 320, 2368, 267, 2923, 713, 585, 286, 49407]
