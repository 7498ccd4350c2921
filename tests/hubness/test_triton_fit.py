"""The fused pass against float64 definitions.

It needs an NVIDIA GPU, or TRITON_INTERPRET=1 and the triton package to be followed slowly on a CPU. Without
either, only what surrounds it is tested.
"""

import os

import numpy as np
import pytest

from wordreel.hubness import make_method, torch_fit, triton_fit

torch = pytest.importorskip("torch")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
needs_triton = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED, reason="needs a CUDA device, or triton and TRITON_INTERPRET=1"
)
LIST = ("best", 3, 10)
FULL = {("logsum", 3.0), ("winners", 1), LIST}


def whole_numbers(rng, *shape):
    """Products of these are exact in every precision, so that ties are ties."""
    return torch.tensor(rng.integers(-2, 3, shape) / 4, dtype=torch.float32)


def largest(scores, count):
    """`[items, count]`, -inf past the end of the bank."""
    ordered = -np.sort(-scores, axis=0)[:count].T
    return np.pad(ordered, ((0, 0), (0, count - ordered.shape[1])), constant_values=-np.inf)


def check(parts, bank, gallery, beta, near=1e-5):
    """Every part against its definition, in float64."""
    scores = bank.double().numpy() @ gallery.double().numpy().T
    if ("logsum", beta) in parts:
        top = scores.max(axis=0)
        wanted = top + np.log(np.exp(beta * (scores - top)).mean(axis=0)) / beta
        assert np.abs(parts["logsum", beta].soft_mean() - wanted).max() < near
    if ("winners", 1) in parts:
        found = parts["winners", 1]
        own = np.take_along_axis(scores, found.ids.astype(int), axis=1)[:, 0]
        assert np.abs(found.scores[:, 0] - scores.max(axis=1)).max() < near
        assert np.abs(own - scores.max(axis=1)).max() < near
    for name, _, width in [key for key in parts if key[0] == "best"]:
        part = next(parts[key] for key in parts if key[0] == name and key[2] == width)
        wanted = largest(scores, width + 1)
        for one, other in ((part.values, wanted[:, :width]), (part.floor, wanted[:, width])):
            with np.errstate(invalid="ignore"):
                assert ((one == other) | (np.abs(one - other) < near)).all()
    return scores


@needs_triton
@pytest.mark.parametrize(
    ("kind", "precision"),
    [("float16", "full"), ("bfloat16", "full"), ("float32", "full"), ("float32", "tf32")],
)
def test_ragged_sizes_and_ties(kind, precision):
    rng = np.random.default_rng(0)
    sizes = (
        [(3, 5, 4), (300, 130, 40)]
        if INTERPRETED
        else [(1, 1, 1), (3, 5, 4), (300, 130, 40), (2000, 700, 65)]
    )
    for rows, items, dim in sizes:
        bank, gallery = (whole_numbers(rng, size, dim).to(getattr(torch, kind)) for size in (rows, items))
        parts, max_abs = torch_fit.fuse(torch, bank, gallery, FULL, DEVICE, precision)
        scores = check(parts, bank, gallery, 3.0)
        assert np.array_equal(parts["winners", 1].ids[:, 0], scores.argmax(axis=1))
        assert max_abs == np.abs(scores.max(axis=1)).max()


@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="takes minutes without a GPU")
@pytest.mark.parametrize("beta", [0.2, 20.0, 300.0])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_cosines_and_logits(beta, scale):
    generator = torch.Generator().manual_seed(1)
    for rows, items, dim in ((5000, 1000, 512), (257, 129, 48), (1024, 4096, 24)):
        bank, gallery = (torch.randn(size, dim, generator=generator) for size in (rows, items))
        bank, gallery = (x / x.norm(dim=1, keepdim=True) for x in (bank * scale, gallery))
        bank = bank * scale
        for kind in (torch.float16, torch.float32):
            wanted = {("logsum", beta), ("winners", 1), ("best", 10, 18), ("best", 2, 2)}
            given = bank.to(kind), gallery.to(kind)
            parts, _ = torch_fit.fuse(torch, *given, wanted, DEVICE, "full")
            assert set(parts) == wanted
            check(parts, *given, beta, near=4e-6 * scale + 2e-6 / beta)


@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="takes minutes without a GPU")
def test_chunks_of_the_gallery_and_lists_that_meet_in_a_slot(monkeypatch):
    """Bank queries that come again every 256 rows put all the largest values of an item into one slot."""
    generator = torch.Generator().manual_seed(2)
    bank = torch.randn(256, 32, generator=generator).repeat(12, 1).half()
    gallery = torch.randn(1500, 32, generator=generator).half()
    monkeypatch.setattr(triton_fit, "SCRATCH", 1 << 18)
    for where in ("cpu", DEVICE):
        parts, _ = torch_fit.fuse(torch, bank, gallery.to(where), FULL, DEVICE, "full")
        check(parts, bank, gallery, 3.0, near=1e-4)


@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="takes minutes without a GPU")
def test_the_fused_states_are_those_of_the_blocks(monkeypatch):
    generator = torch.Generator().manual_seed(3)
    bank, gallery = (torch.randn(size, 64, generator=generator) for size in (3000, 2000))
    methods = [
        make_method("is"),
        make_method("dis"),
        make_method("csls"),
        make_method("dis", beta=5.0, k=2),
        make_method("nnn"),
        make_method("cent"),
    ]
    methods += [make_method("nnn", k=10, reserve=0)]
    slow = torch_fit.fit_embeddings_on_device(methods, bank / 8, gallery / 8, device=DEVICE)
    monkeypatch.setattr(torch_fit, "FUSE_FROM", 0)
    fast = torch_fit.fit_embeddings_on_device(methods, bank / 8, gallery / 8, device=DEVICE)
    for one, other in zip(slow, fast, strict=True):
        assert np.abs(one.bias() - other.bias()).max() < 1e-5
        if one.method.gated:
            assert np.mean(one.activation == other.activation) > 0.999
    for broken in (torch.nan, torch.inf):
        wrong = bank.clone()
        wrong[7, 3] = broken
        with pytest.raises(Exception, match="not finite"):
            torch_fit.fit_embeddings_on_device(methods[:1], wrong, gallery, device=DEVICE)


def test_what_is_fused_and_what_is_not():
    can = torch_fit._can_fuse
    assert can(("logsum", 20.0))
    assert can(("winners", 1))
    assert can(("best", 10, 18))
    assert not any(map(can, [("logsum", 0.01), ("winners", 2), ("best", 128, 144), ("mean",)]))
    assert not triton_fit.available(torch, "cpu")


def test_several_methods_share_one_pass(monkeypatch):
    """One β, one set of winners and one list are gathered once, and each state is its method's own."""
    rng = np.random.default_rng(0)
    bank, gallery = whole_numbers(rng, 70, 6), whole_numbers(rng, 23, 6)
    asked = []
    builder_of = torch_fit.builder_of
    monkeypatch.setattr(torch_fit, "builder_of", lambda key: asked.append(key) or builder_of(key))
    methods = [
        make_method("is"),
        make_method("dis"),
        make_method("csls"),
        make_method("nnn", k=10, reserve=8),
    ]
    states = torch_fit.fit_embeddings_on_device(methods, bank, gallery, device="cpu")
    assert sorted(asked) == [("best", 10, 18), ("logsum", 20.0), ("winners", 1)]
    for method, state in zip(methods, states, strict=True):
        assert state.method == method
        assert np.allclose(state.bias(), method.fit((bank @ gallery.T).numpy()).bias(), atol=1e-5)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_and_arrays_of_every_precision(kind):
    rng = np.random.default_rng(1)
    bank, gallery = (whole_numbers(rng, size, 6).to(getattr(torch, kind)) for size in (40, 9))
    wanted = make_method("is").fit((bank.float() @ gallery.float().T).numpy()).bias()
    found = torch_fit.fit_embeddings_on_device([make_method("is")], bank, gallery, device="cpu")[0]
    assert np.allclose(found.bias(), wanted, atol=1e-5)
    if kind != "bfloat16":
        arrays = bank.numpy(), gallery.numpy()
        arrays[0].flags.writeable = False
        assert np.allclose(
            torch_fit.fit_embeddings_on_device([make_method("is")], *arrays, device="cpu")[0].bias(),
            wanted,
            atol=1e-5,
        )
