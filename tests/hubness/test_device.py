"""The device pass against the NumPy one; skipped where torch, an optional extra, is not installed."""

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import device as devices_of
from wordreel.hubness import fit, fit_many, make_method, mixtures, product

NAMES = ["none", "is", "dis", "csls", "nnn", "cent", "test-is", "dsl", "dual-is", "dual-dis"]


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
    given = [product(bank, gallery), None if extra is None else product(extra, gallery)]
    wanted = method.fit(*given)
    monkeypatch.setattr(devices_of, "AUTO_FROM", 0)
    for device in devices():
        monkeypatch.setattr(devices_of, "find_gpu", lambda device=device: device)
        for block in (23, 23 * 16, 1 << 20):
            monkeypatch.setattr(devices_of, "BLOCK", block)
            found = method.fit(*given, device="cuda")
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


def test_the_flag_says_what_the_device_can_gather():
    from wordreel.hubness.registry import METHODS, STATISTICS

    for kind in {**METHODS, **STATISTICS}.values():
        method = kind()
        kinds = {spec.kind for bank in method.banks for spec in method.statistics(bank)}
        assert kind.gpu == (kinds <= set(devices_of.STATISTICS)), kind.name


def test_what_the_device_refuses(torch_as_gpu):
    good = np.eye(3, dtype=np.float32)
    for method, bank, words in (
        ("sinkhorn", good, "no GPU version"),
        ("gc", good, "no GPU version"),
        ("is", good[:0], "no queries"),
        ("is", good * np.nan, "not finite"),
    ):
        with pytest.raises(HubnessError, match=words):
            make_method(method).fit(product(bank, good), device="cuda")
    with pytest.raises(HubnessError, match="2 columns but the gallery has 3"):
        make_method("dual-is").fit(product(good, good), product(good, good[:2]), device="cuda")


@pytest.fixture
def torch_as_gpu(monkeypatch):
    """torch on the CPU stands in for a GPU, however small the bank is."""
    pytest.importorskip("torch")
    monkeypatch.setattr(devices_of, "find_gpu", lambda: "cpu")
    monkeypatch.setattr(devices_of, "AUTO_FROM", 0)
    used = []
    run = fit.gather_on_device
    monkeypatch.setattr(fit, "gather_on_device", lambda *given: used.append(1) or run(*given))
    return used


def banks_of_every_kind(rng):
    """Each with the matrix it stands for."""
    queries, items = whole_numbers(rng, 40, 3, 4), whole_numbers(rng, 15, 3, 4)
    weights = rng.integers(0, 4, (40, 3)).astype(np.float32) / 4
    available = rng.uniform(size=(15, 3)) < 0.7
    mixed = mixtures(queries, weights, items, available)
    one = mixtures(queries[:, :1], weights[:, :1] + 1, items[:, :1], np.ones((15, 1), bool))
    flat = product(queries[:, 0], items[:, 0])
    yield "matrix", lambda: flat.read(0, 40), flat.read(0, 40)
    yield "float64", lambda: flat.read(0, 40).astype(np.float64), flat.read(0, 40)
    yield "stream", lambda: (rows for rows in np.array_split(flat.read(0, 40), 3)), flat.read(0, 40)
    yield "product", lambda: flat, flat.read(0, 40)
    yield "one expert", lambda: one, one.read(0, 40)
    yield "mixtures", lambda: mixed, mixed.read(0, 40)


@pytest.mark.parametrize("device", ["auto", "cuda"])
@pytest.mark.parametrize("name", ["is", "dis", "csls", "cent"])
def test_every_bank_is_fitted_on_the_device(name, device, torch_as_gpu):
    method = make_method(name)
    for kind, bank, matrix in banks_of_every_kind(np.random.default_rng(1)):
        torch_as_gpu.clear()
        wanted = method.fit(matrix)
        for found in (method.fit(bank(), device=device), fit_many([method], bank(), device=device)[0]):
            assert (found.bank_size, found.items) == (40, 15)
            assert np.allclose(found.bias(), wanted.bias(), atol=1e-5), kind
            if method.gated:
                assert np.array_equal(found.activation, wanted.activation), kind
        assert len(torch_as_gpu) == 2


def test_a_method_without_a_device_version_is_fitted_on_the_cpu_or_refused(torch_as_gpu):
    bank = np.random.default_rng(2).uniform(-1, 1, size=(30, 7)).astype(np.float32)
    for name in ("gc", "sinkhorn"):
        method = make_method(name)
        rows = bank[:3]
        wanted = method.apply(rows, method.fit(bank))
        assert np.array_equal(method.apply(rows, method.fit(bank, device="auto")), wanted)
        with pytest.raises(HubnessError, match="no GPU version"):
            method.fit(bank, device="cuda")
    assert torch_as_gpu == []


def test_small_banks_and_machines_without_a_gpu_stay_on_the_cpu(monkeypatch):
    bank = np.eye(3, dtype=np.float32)
    monkeypatch.setattr(devices_of, "find_gpu", lambda: pytest.fail("too small to look for a GPU"))
    make_method("is").fit(bank, device="auto")
    monkeypatch.setattr(devices_of, "find_gpu", lambda: None)
    monkeypatch.setattr(devices_of, "AUTO_FROM", 0)
    make_method("is").fit(bank, device="auto")
    with pytest.raises(HubnessError, match="no CUDA GPU"):
        make_method("is").fit(bank, device="cuda")
    with pytest.raises(HubnessError, match="no device 'tpu'"):
        make_method("is").fit(bank, device="tpu")
