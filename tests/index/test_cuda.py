"""The search of a GPU, followed on the CPU by the same code; on a GPU too where there is one."""

import numpy as np
import pytest
from tests.index.naive import check_search, correction_of, unit_vectors, whole_numbers

from wordreel.index import cuda, groups
from wordreel.index.cuda import DeviceItems, cuda_index

torch = pytest.importorskip("torch")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["plain", "corrected", "gated"])
@pytest.mark.parametrize("make", [whole_numbers, unit_vectors])
def test_searches_equal_the_definition(seed, kind, make, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(cuda, "RESCORED", int(rng.integers(1, 30)))
    monkeypatch.setattr(groups, "FEW", int(rng.integers(0, 12)))
    monkeypatch.setattr(cuda, "COPIED", int(rng.integers(1, 200)))
    case = make(rng, int(rng.integers(1, 120)))
    index = cuda_index(case[0], case[1], DEVICE)
    correction = correction_of(kind, rng, case[4])
    allowed = rng.random(len(case[0])) < 0.8
    for _ in range(2):  # the second time with what is on the device already
        check_search(index, case, int(rng.integers(1, 12)), allowed, correction)
    check_search(index, case, 5, None, correction)


def test_equal_items_are_found_in_order():
    items = torch.ones(64, 3, device=DEVICE)
    places, scores = DeviceItems(torch, items).nearest(torch.ones(3, device=DEVICE), 3)
    assert places.tolist() == [0, 1, 2]
    assert scores.tolist() == [3.0, 3.0, 3.0]


def test_a_rounded_product_does_not_decide():
    """Scores that float32 cannot tell apart are ordered by their exact values."""
    items = torch.tensor([[1.0, 2.0**-30], [1.0, 2.0**-29], [1.0, 0.0]], device=DEVICE)
    places, _ = DeviceItems(torch, items).nearest(torch.ones(2, device=DEVICE), 1)
    assert places.tolist() == [1]


def test_an_empty_gallery_has_no_best():
    index = cuda_index(np.zeros((0, 2, 3), np.float32), np.zeros((0, 2), bool), DEVICE)
    found = index.search(np.ones((1, 2, 3), np.float32), np.ones((1, 2), np.float32), 2)
    assert found.rows.tolist() == [[-1, -1]]


def test_the_copy_stays_and_new_rows_are_scanned(monkeypatch):
    case = unit_vectors(np.random.default_rng(0), 100)
    monkeypatch.setattr(cuda, "find_gpu", lambda: DEVICE)
    assert cuda.gpu_index("few", case[0], case[1]) is None
    monkeypatch.setattr(cuda, "WORTH", 0)
    monkeypatch.setattr(cuda, "fits_gpu", lambda vectors, device: False)
    assert cuda.gpu_index("too large", case[0], case[1]) is None
    monkeypatch.setattr(cuda, "fits_gpu", lambda vectors, device: True)
    first = cuda.gpu_index("library", case[0][:97], case[1][:97])
    assert cuda.gpu_index("library", case[0][:97], case[1][:97]) is first
    longer = cuda.gpu_index("library", case[0], case[1])
    assert longer.parts[0] is first
    check_search(longer, case, 5, None, None)
    assert cuda.gpu_index("library", case[0][:90], case[1][:90]) is not first
    monkeypatch.setattr(cuda, "find_gpu", lambda: None)
    assert cuda.gpu_index("library", case[0], case[1]) is None
