"""The search of a GPU, followed on the CPU by the same code; on a GPU too where there is one."""

import os

import numpy as np
import pytest
from tests.index.naive import check_search, correction_of, unit_vectors, whole_numbers

from wordreel.index import cuda, cuda_kernels
from wordreel.index.cuda import CudaIndex, DeviceItems

torch = pytest.importorskip("torch")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["plain", "corrected", "gated"])
@pytest.mark.parametrize("make", [whole_numbers, unit_vectors])
def test_searches_equal_the_definition(seed, kind, make, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(cuda, "BLOCK", int(rng.integers(1, 9)))
    monkeypatch.setattr(cuda, "EXTRA", int(rng.integers(0, 3)))
    monkeypatch.setattr(cuda, "AT_ONCE", int(rng.integers(1, 200)))
    monkeypatch.setattr(cuda, "MAXIMA", int(rng.integers(1, 60)))
    monkeypatch.setattr(cuda, "GATHERED", int(rng.integers(1, 2000)))
    monkeypatch.setattr(cuda, "COPIED", int(rng.integers(1, 200)))
    case = make(rng, int(rng.integers(1, 120)))
    index = CudaIndex(case[0], case[1], DEVICE)
    correction = correction_of(kind, rng, case[4])
    allowed = rng.random(len(case[0])) < 0.8
    for _ in range(2):  # the second time with what is on the device already
        check_search(index, case, int(rng.integers(1, 12)), allowed, correction)
    check_search(index, case, 5, None, correction)


def test_equal_items_beyond_the_first_blocks_are_found_in_order(monkeypatch):
    monkeypatch.setattr(cuda, "BLOCK", 2)
    monkeypatch.setattr(cuda, "EXTRA", 0)
    items = torch.ones(64, 3, device=DEVICE)
    places, scores = DeviceItems(torch, items).best(torch.ones(1, 3, device=DEVICE), 3)
    assert places.tolist() == [[0, 1, 2]]
    assert scores.tolist() == [[3.0, 3.0, 3.0]]


def test_a_rounded_product_does_not_decide(monkeypatch):
    """Scores that float32 cannot tell apart are ordered by their exact values."""
    monkeypatch.setattr(cuda, "BLOCK", 1)
    monkeypatch.setattr(cuda, "EXTRA", 0)
    items = torch.tensor([[1.0, 2.0**-30], [1.0, 2.0**-29], [1.0, 0.0]], device=DEVICE)
    places, _ = DeviceItems(torch, items).best(torch.ones(1, 2, device=DEVICE), 1)
    assert places.tolist() == [[1]]


def test_an_empty_gallery_has_no_best():
    index = CudaIndex(np.zeros((0, 2, 3), np.float32), np.zeros((0, 2), bool), DEVICE)
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


@pytest.mark.skipif(DEVICE == "cpu" and not INTERPRETED, reason="needs a GPU, or TRITON_INTERPRET=1")
@pytest.mark.parametrize("penalised", [False, True])
def test_the_kernel_equals_the_product(penalised):
    generator = torch.Generator().manual_seed(0)
    items = torch.randn(64 * 5, 200, generator=generator).to(DEVICE)
    query, penalty = items[:1] + 1, items[:, 0].contiguous()
    maxima = torch.empty(1, 5, device=DEVICE)
    cuda_kernels.block_maxima[(5,)](
        items, query, penalty, maxima, DIM=200, ROWS=64, DEEP=128, PENALTY=penalised
    )
    scores = (items @ query[0] - (penalty if penalised else 0)).view(5, 64)
    assert torch.allclose(maxima[0], scores.amax(1), rtol=1e-4)


def test_a_kernel_that_cannot_be_compiled_is_not_tried_again(monkeypatch):
    tried = []

    class Kernel:
        def __getitem__(self, grid):
            tried.append(grid)
            raise RuntimeError("Failed to find C compiler")

    class Items:
        is_cuda, shape = True, (64, 8)

    monkeypatch.setattr(cuda_kernels, "READY", True)
    monkeypatch.setattr(cuda_kernels, "block_maxima", Kernel())
    for _ in range(2):
        assert not cuda_kernels.fill_maxima(Items(), None, None, torch.empty(1), 64)
    assert tried == [(1,)]
