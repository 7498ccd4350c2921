"""Several methods from one pass, each as its own fit gives it; and long banks, mostly passed over."""

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import fit_many, make_method, product
from wordreel.hubness.bank_statistics import Spec, TopK
from wordreel.hubness.fit import gather


def same(one, other):
    assert (one.method, one.items, one.bank_size) == (other.method, other.items, other.bank_size)
    for name, bank in one.banks.items():
        assert bank.statistics.keys() == other.banks[name].statistics.keys()
        for key, part in bank.statistics.items():
            for field, array in part.arrays().items():
                assert np.array_equal(array, other.banks[name].statistics[key].arrays()[field]), (key, field)


def test_each_state_is_that_of_its_own_fit():
    rng = np.random.default_rng(0)
    bank, second = (rng.normal(0, 0.1, (rows, 17)).astype(np.float32) for rows in (400, 90))
    methods = [
        make_method("gc"),
        make_method("is"),
        make_method("dis"),
        make_method("dis", k=3),
        make_method("is", beta=5.0),
        make_method("csls"),
        make_method("nnn"),
        make_method("cent"),
    ]
    for method, state in zip(methods, fit_many(methods, bank), strict=True):
        same(state, method.fit(bank))
    both = [*methods, make_method("dual-is"), make_method("dual-dis")]
    for method, state in zip(both, fit_many(both, bank, second), strict=True):
        same(state, method.fit(bank, second if len(method.banks) > 1 else None))
    shared = fit_many([make_method("is"), make_method("dis")], bank)
    assert shared[0].banks["queries"].statistics["logsum"] is shared[1].banks["queries"].statistics["logsum"]
    assert fit_many([], bank) == []


def test_embeddings_are_multiplied_once():
    rng = np.random.default_rng(1)
    bank, gallery = (
        rng.normal(0, 0.1, (700, 8)).astype(np.float32),
        rng.normal(size=(31, 8)).astype(np.float32),
    )
    source = product(bank, gallery)
    reads = []

    class Counted:
        shape = source.shape

        def read(self, start, stop):
            reads.append(stop - start)
            return source.read(start, stop)

    methods = [make_method("is"), make_method("dis"), make_method("nnn", k=20)]
    found = fit_many(methods, Counted(), threads=1)
    assert sum(reads) == 700
    for method, state in zip(methods, found, strict=True):
        same(state, method.fit(product(bank, gallery), threads=1))


@pytest.mark.parametrize("name", ["sinkhorn", "dual-is"])
def test_what_cannot_share_a_pass_is_refused(name):
    with pytest.raises(HubnessError, match=name):
        fit_many([make_method("is"), make_method(name)], np.eye(3))


@pytest.mark.parametrize("order", ["random", "rising", "falling", "level"])
@pytest.mark.parametrize("k", [1, 18, 310])
def test_the_best_of_a_long_bank(order, k):
    rng = np.random.default_rng(2)
    bank = np.round(rng.normal(size=(3_000, 7)), 2).astype(np.float32)
    bank = {
        "random": bank,
        "rising": np.sort(bank, axis=0),
        "falling": -np.sort(-bank, axis=0),
        "level": bank * 0,
    }[order]
    spec = Spec(TopK, k)
    part = gather(iter(np.array_split(bank, 40)), [spec]).statistics[spec]
    ranked = -np.sort(-bank, axis=0)
    assert np.array_equal(part.values, ranked[:k].T)
    assert np.allclose(part.mean(), ranked[:k].mean(axis=0), atol=1e-6)
