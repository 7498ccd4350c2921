"""The device pass against the NumPy one; skipped where torch, an optional extra, is not installed."""

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import fit_embeddings, make_method, torch_blocks, torch_fit

NAMES = ["none", "is", "dis", "csls", "nnn", "cent", "dsl", "dual-is", "dual-dis"]


def whole_numbers(rng, *shape):
    """Products of these are exact in float32, so that ties are ties on every device."""
    return rng.integers(-2, 3, shape).astype(np.float32) / 4


def devices():
    torch = pytest.importorskip("torch")
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parameters", [{}, {"k": 3}, {"beta": 0.05}])
def test_the_device_gathers_the_same_state(name, parameters, monkeypatch):
    if not set(parameters) <= set(make_method(name).__dataclass_fields__) - {"name"}:
        pytest.skip("not a parameter of this method")
    rng = np.random.default_rng(0)
    bank, gallery, extra = (whole_numbers(rng, size, 6) for size in (70, 23, 31))
    extra = extra if name.startswith("dual") else None
    method = make_method(name, **parameters)
    wanted = fit_embeddings(method, bank, gallery, extra)
    for device in devices():
        for block in (23, 23 * 16, 1 << 20):
            monkeypatch.setattr(torch_blocks, "BLOCK", block)
            found = torch_fit.fit_embeddings_torch(method, bank, gallery, extra, device=device)
            for key, one in wanted.banks.items():
                for part, numbers in one.statistics.items():
                    other = found.banks[key].statistics[part].arrays()
                    for field, array in numbers.arrays().items():
                        if part != "logsum":
                            assert np.allclose(array, other[field], atol=1e-5), (part, field)
                    if part == "logsum":
                        soft = found.banks[key].statistics[part].soft_mean()
                        assert np.allclose(numbers.soft_mean(), soft, atol=1e-5)
            grown = found.add(bank @ gallery.T)
            assert grown.bank_size == 140


def test_what_the_device_refuses():
    pytest.importorskip("torch")
    good = np.eye(3, dtype=np.float32)
    for bad in (
        lambda: torch_fit.fit_embeddings_torch(make_method("sinkhorn"), good, good, device="cpu"),
        lambda: torch_fit.fit_embeddings_torch(make_method("gc"), good, good, device="cpu"),
        lambda: torch_fit.fit_embeddings_torch(make_method("dual-is"), good, good, device="cpu"),
        lambda: torch_fit.fit_embeddings_torch(make_method("is"), good[:0], good, device="cpu"),
        lambda: torch_fit.fit_embeddings_torch(make_method("is"), good * np.nan, good, device="cpu"),
    ):
        with pytest.raises(HubnessError):
            bad()


def test_without_torch_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HubnessError, match=r"wordreel\[train\]"):
        torch_fit.fit_embeddings_torch(make_method("is"), np.eye(3), np.eye(3))
