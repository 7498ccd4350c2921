import builtins

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.lab.training.appearance.tiny import data, pictures, recipe

from wordreel.errors import TrainingError
from wordreel.lab.training.appearance.pack_file import KEY, load_pictures, save_pictures
from wordreel.lab.training.appearance.picture_set import decode_picture, encode_picture, held_out


def test_pictures_come_back_nearly_as_they_were():
    ramp = np.linspace(0, 255, 32)[:, None, None] * np.ones((32, 32, 3)) * [1.0, 0.5, 0.2]
    picture = ramp.astype(np.uint8)
    found = decode_picture(encode_picture(picture), 32)
    assert np.abs(found.astype(int) - picture).mean() < 4


def test_pillow_decodes_what_opencv_decodes(monkeypatch):
    pytest.importorskip("PIL")
    content = encode_picture(np.full((8, 8, 3), [200, 10, 90], np.uint8))
    expected = decode_picture(content, 8)
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "cv2":
            raise ImportError
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert np.abs(decode_picture(content, 8).astype(int) - expected).max() <= 2
    with pytest.raises(TrainingError, match="damaged"):
        decode_picture(content[:20], 8)


def test_pictures_of_another_size_or_none_are_refused():
    content = encode_picture(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(TrainingError, match="not of 16 pixels"):
        decode_picture(content, 16)
    with pytest.raises(TrainingError, match="damaged"):
        decode_picture(np.zeros(9, np.uint8), 8)


def test_taking_items_takes_their_pictures_and_captions():
    whole = pictures()
    mask = np.arange(12) % 3 == 1
    some = whole.take(mask)
    shots, numbers = whole.decode(16), np.flatnonzero(mask)
    expected = [shots[whole.firsts[n] + k] for n in numbers for k in range(whole.counts[n])]
    np.testing.assert_array_equal(some.decode(16), np.stack(expected))
    assert some.pairs.ids == tuple(whole.pairs.ids[n] for n in numbers)
    firsts = np.cumsum(whole.pairs.counts) - whole.pairs.counts
    rows = [firsts[n] + k for n in numbers for k in range(whole.pairs.counts[n])]
    np.testing.assert_array_equal(some.sentences, whole.sentences[rows])
    assert some.fingerprint != whole.fingerprint


def test_held_out_items_do_not_depend_on_the_others():
    ids = tuple(f"video {n}" for n in range(2000))
    mask = held_out(ids, 0.1)
    assert 0.07 < mask.mean() < 0.13
    np.testing.assert_array_equal(held_out(ids[::3], 0.1), mask[::3])
    assert not held_out(ids, 0.0).any()


def test_a_pack_gives_the_data_back(tmp_path):
    given = data()
    save_pictures(tmp_path / "p", recipe(), given)
    found = load_pictures(tmp_path / "p", recipe())
    for old, new in ((given.train, found.train), (given.val, found.val)):
        assert new.fingerprint == old.fingerprint
        assert (new.names, new.pairs.shares, new.pairs.name) == (old.names, old.pairs.shares, old.pairs.name)
        np.testing.assert_allclose(new.sentences, old.sentences, atol=np.abs(old.sentences).max() / 250)
    assert found.start.keys() == {name for name in given.start if "num_batches" not in name}
    for name, array in found.start.items():
        np.testing.assert_allclose(array, given.start[name], atol=1e-3)


def test_wrong_packs_are_refused(tmp_path):
    save_pictures(tmp_path / "p", recipe(), data())
    from dataclasses import replace

    larger = replace(recipe(), model=replace(recipe().model, size=32))
    with pytest.raises(TrainingError, match=r"16 pixels, the recipe says 32"):
        load_pictures(tmp_path / "p", larger)
    (tmp_path / "short").write_bytes((tmp_path / "p").read_bytes()[:-5])
    with pytest.raises(TrainingError, match="not hold packed pictures"):
        load_pictures(tmp_path / "short", recipe())
    arrays = load_file(tmp_path / "p")
    save_file(arrays, tmp_path / "later", metadata={KEY: '{"format": 9}'})
    with pytest.raises(TrainingError, match="format 9"):
        load_pictures(tmp_path / "later", recipe())


def test_pictures_that_do_not_match_their_captions_are_refused():
    from dataclasses import replace

    with pytest.raises(TrainingError, match="not of the same items"):
        replace(pictures(), lengths=pictures().lengths[:-1])
