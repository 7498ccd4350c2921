"""The `clip` expert: which frames it sees, whose eyes, and which tracks may replace which."""

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.experts.heads import random_head

from wordreel.catalogue.passes import quick_fingerprint
from wordreel.experts import clip, registry, small_eyes
from wordreel.experts.clip import CARD, PREPROCESS, ClipExpert
from wordreel.experts.frame_policy import POLICY, middle, stretches
from wordreel.media import Fence
from wordreel.media.shot_detection import describe
from wordreel.media.types import Frames, Sound
from wordreel.runtime.nets.clip_tower import in_float
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track


def colours(squares):
    """Eyes that see the mean colour of quarters of a picture."""
    quarters = squares.reshape(len(squares), 2, 112, 2, 112, 3).mean(axis=(2, 4)).reshape(len(squares), -1)
    return np.pad(quarters, ((0, 0), (0, 500))).astype(np.float32)


@pytest.fixture
def expert():
    return ClipExpert(colours, "eyes")


@pytest.fixture
def head(tmp_path, monkeypatch):
    """A head of the small eyes, and a store without the large ones."""
    path = tmp_path / "head.safetensors"
    save_file(random_head(), str(path))
    monkeypatch.setattr(small_eyes, "FILE", path)
    monkeypatch.delenv(clip.EYES_VARIABLE, raising=False)
    return WeightStore(tmp_path / "weights")


def frames(seconds, start=0.0, shape=(224, 300)):
    """Colours that change every three seconds."""
    times = start + np.arange(round(seconds * POLICY.rate)) / POLICY.rate
    rng = np.random.default_rng(0)
    palette = rng.integers(0, 255, (int(times[-1]) // 3 + 1, 3))
    images = np.broadcast_to(
        palette[(times // 3).astype(int)][:, None, None], (len(times), *shape, 3)
    ).astype(np.uint8)
    return Frames(images, times, 1 / POLICY.rate)


def twin(media, expert):
    """Choose from the whole chunk at once."""
    descriptors = describe(Frames(media.images[:, ::4, ::4], media.times, media.period))
    found = stretches(descriptors, media.times)
    edges = [*media.times, media.times[-1] + media.period]
    rows = expert.see(PREPROCESS.crop(media.images[[middle(stretch) for stretch in found]]))
    return Track(rows, np.array([[edges[a], edges[b]] for a, b in found]))


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_a_chunk_in_pieces_is_the_twin(expert, piece):
    media = frames(32.0)
    chunk = expert.begin()
    for first in range(0, len(media), piece):
        part = slice(first, first + piece)
        chunk.push(Frames(media.images[part], media.times[part], media.period))
    track, wanted = chunk.finish(), twin(media, expert)
    np.testing.assert_array_equal(track.values, wanted.values)
    np.testing.assert_array_equal(track.times, wanted.times)
    assert len(track) < len(media) / 2


def test_rows_are_of_length_one_and_tile_the_time(expert):
    chunk = expert.begin()
    chunk.push(frames(20.0, start=32.0))
    track = chunk.finish()
    np.testing.assert_allclose(np.linalg.norm(track.values, axis=1), 1, atol=1e-5)
    assert track.times[0, 0] == 32.0
    assert track.times[-1, 1] == 52.0
    np.testing.assert_array_equal(track.times[1:, 0], track.times[:-1, 1])


def test_a_picture_is_one_row_and_nothing_is_absent(expert):
    picture = Frames(np.full((1, 90, 40, 3), 200, np.uint8), np.zeros(1), 0.5)
    chunk = expert.begin()
    chunk.push(picture)
    assert len(chunk.finish()) == len(expert.extract(picture)) == 1
    assert isinstance(expert.begin().finish(), Absent)
    assert isinstance(expert.extract(Sound(np.zeros(10, np.float32), 10)), Absent)


def test_single_frames_have_a_row_each(expert):
    """As the quick pass and searches by picture want them."""
    track = expert.extract(frames(9.0))
    assert len(track) == 18
    assert registry.sees_single_frames("clip")
    black = Frames(np.zeros((1, 224, 224, 3), np.uint8), np.zeros(1), 0.5)
    assert np.isfinite(expert.extract(black).values).all()


def test_without_the_large_eyes_the_small_ones_look(head):
    expert = registry.load("clip", head)
    assert expert.fingerprint == registry.load_quick("clip", head).fingerprint == clip.small_fingerprint()
    track = expert.extract(frames(1.0))
    assert track.values.shape == (2, CARD.dim)
    assert (
        clip.eyes_of(expert.fingerprint)
        == clip.eyes_of(quick_fingerprint(expert.fingerprint))
        == "small eyes"
    )
    assert clip.eyes_of("0123456789abcdef") == ""


def test_the_large_eyes_look_where_they_are_unless_small_ones_are_wanted(head, monkeypatch):
    monkeypatch.setattr(head, "file", lambda name: "network.onnx")
    monkeypatch.setattr(clip, "_Tower", lambda file: colours)
    assert registry.load("clip", head).fingerprint == clip.large_fingerprint()
    assert registry.load_quick("clip", head).fingerprint == clip.small_fingerprint()
    monkeypatch.setenv(clip.EYES_VARIABLE, "small")
    assert registry.load("clip", head).fingerprint == clip.small_fingerprint()


def test_small_eyes_never_replace_large_ones(head):
    large, small = clip.large_fingerprint(), clip.small_fingerprint()
    assert registry.is_current("clip", large, small)
    assert not registry.is_current("clip", small, large)
    assert not registry.is_current("clip", quick_fingerprint(small), small)
    assert not registry.is_current("clip", "another version", small)
    assert not registry.is_current("motion", large, small)


def test_the_real_eyes_tell_a_disc_from_a_grid(monkeypatch):
    monkeypatch.delenv(clip.EYES_VARIABLE)
    store = WeightStore()
    if not store.has(clip.WEIGHTS):
        pytest.skip("the weights are not on this machine")
    from tests.experts.test_appearance import picture

    expert = registry.load("clip", store)
    assert clip.eyes_of(expert.fingerprint) == "CLIP ViT-B/16"
    shown = [
        picture(),
        picture()[:, ::-1],
        np.indices((240, 320)).sum(0)[..., None].repeat(3, 2) // 20 % 2 * 255,
    ]
    rows = expert.extract(Frames(np.stack(shown).astype(np.uint8), np.arange(3) / 2, 0.5)).values
    assert rows[0] @ rows[1] > 0.9
    assert rows[0] @ rows[2] < 0.8


def test_the_real_eyes_see_a_picture_as_pillow_gives_it(tmp_path):
    """In float: rounding to 8 bits differs by more between any two pictures."""
    image = pytest.importorskip("PIL.Image")
    store = WeightStore()
    if not store.has(clip.WEIGHTS):
        pytest.skip("the weights are not on this machine")
    from tests.media.test_accurate_frames import as_pillow, scene

    path = tmp_path / "scene.jpg"
    image.fromarray(scene(1008, 756)).save(path, quality=90)
    with Fence() as fence:
        (window,) = fence.stream(path, [CARD.need])
    seen, wanted = window.parts[0].images, as_pillow(path, 224)[None].astype(np.uint8)
    network = Network(in_float(store.file(clip.WEIGHTS)))
    rows = network(pixel_values=PREPROCESS(PREPROCESS.crop(np.concatenate([seen, wanted]))))["image_embeds"]
    assert rows[0] @ rows[1] / np.prod(np.linalg.norm(rows, axis=1)) > 0.995
