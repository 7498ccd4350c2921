"""What cannot be used is refused with a reason, and what looks wrong is warned of."""

import warnings

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import METHODS, make_method


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(name, bad):
    good = np.random.default_rng(0).uniform(size=(4, 3)).astype(np.float32)
    broken = good.copy()
    broken[2, 1] = bad
    method = make_method(name)
    second = good if len(method.banks) == 2 else None
    with pytest.raises(HubnessError, match="row 2, column 1"):
        method.fit(broken, second)
    state = method.fit(good, second)
    with pytest.raises(HubnessError, match="column 1"):
        method.apply(broken, state)


def test_shapes_and_types():
    method = make_method("dis")
    good = np.eye(3)
    state = method.fit(good)
    for bank, words in (
        (np.zeros((0, 3)), "no queries"),
        (np.zeros((3, 0)), "gallery is empty"),
        (np.zeros(3), "must be a matrix"),
        (np.zeros((2, 2, 2)), "must be a matrix"),
        (np.array([["a"]]), "real numbers"),
        (np.zeros((2, 2), complex), "real numbers"),
        (iter([]), "no queries"),
        (iter([np.eye(2), np.eye(3)]), "3 columns but the gallery has 2"),
        (5, "row blocks"),
        (good * 1e31, "column 0"),
    ):
        with pytest.raises(HubnessError, match=words):
            method.fit(bank)
    for change, words in (
        (lambda: method.apply(np.zeros(3), state), "must be a matrix"),
        (lambda: method.apply(np.zeros((2, 4)), state), "transpose"),
        (lambda: state.add(np.zeros((2, 4))), "4 columns"),
        (lambda: state.extend(np.zeros((2, 1))), "2 rows"),
        (lambda: state.remove(np.array([3])), "from 0 to 2"),
        (lambda: state.remove(np.arange(3)), "leaves no gallery"),
        (lambda: state.merge(make_method("dis", k=2).fit(good)), "cannot be merged"),
        (lambda: make_method("is").apply(good, state), "fitted by"),
        (lambda: make_method("gc").fit(good).bias(), "one number per item"),
        (lambda: make_method("is").fit(good).activation, "activation set"),
        (lambda: method.fit(good, good), "is fitted with"),
        (lambda: make_method("dual-is").fit(good), "is fitted with"),
        (lambda: make_method("sinkhorn").fit(iter([good])), "several times"),
        (lambda: make_method("dual-sinkhorn").fit(good), "is fitted with queries and gallery"),
        (lambda: make_method("dual-sinkhorn").fit(good, good[:2]), "one has 3, the other 2"),
        (lambda: make_method("sinkhorn").fit(good, good), "is fitted with queries"),
        (lambda: make_method("gc").fit(good, device="cuda"), "'gc' has no GPU version"),
        (lambda: make_method("sinkhorn").fit(good, device="cuda"), "'sinkhorn' has no GPU version"),
        (lambda: make_method("nope"), "no method"),
        (lambda: make_method("dis", gamma=1), "parameters beta, k"),
        (lambda: make_method("dis", beta=0.0), "beta must be"),
        (lambda: make_method("dis", beta=float("nan")), "beta must be"),
        (lambda: make_method("dis", beta="20"), "beta must be"),
        (lambda: make_method("dis", k=0), "k must be"),
        (lambda: make_method("nnn", alpha=-1.0), "alpha must be"),
    ):
        with pytest.raises(HubnessError, match=words):
            change()


def test_no_rows_give_no_scores():
    method = make_method("dis")
    found = method.apply(np.zeros((0, 3), np.float32), method.fit(np.eye(3)))
    assert found.shape == (0, 3)
    assert make_method("is").apply(np.zeros((0, 3)), make_method("is").fit(np.eye(3))).shape == (0, 3)


def test_whole_numbers_are_similarities_too():
    method = make_method("cent")
    assert method.apply(np.array([[3, 1]]), method.fit(np.array([[1, 2], [3, 2]]))).tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("name", ["is", "dis", "dsl", "sinkhorn"])
def test_logits_with_a_beta_for_cosines_are_warned_of(name):
    logits = np.random.default_rng(0).normal(25, 5, (6, 4)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"beta_logit = beta_cos / scale"):
        make_method(name).fit(logits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_method(name, beta=0.2).fit(logits)
        make_method(name).fit(logits / 100)
        make_method("csls").fit(logits)
