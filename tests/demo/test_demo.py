from pathlib import PurePosixPath

import numpy as np
import pytest

from wordreel import media
from wordreel.demo.audio import sea_sound, speak, write_wav
from wordreel.demo.collection import ARCHIVES, QUERIES, DemoQuery, build_collection
from wordreel.demo.film import HEIGHT, RATE, WIDTH, drift, title_card, write_film


def test_a_moment_counts_only_if_it_is_mostly_the_right_one():
    query = DemoQuery("a rocket", "film.mp4", (5, 10))
    assert query.answered_by("film.mp4", 5.0, 10.0)
    assert query.answered_by("film.mp4", 6.0, 7.0)
    assert not query.answered_by("film.mp4", 0.0, 15.0)
    assert not query.answered_by("film.mp4", 0.0, 5.0)
    assert not query.answered_by("other.mp4", 5.0, 10.0)
    assert DemoQuery("a cat", "cat.png").answered_by("cat.png", 0, 0)


def test_there_are_ten_queries():
    assert len({query.text for query in QUERIES}) == 10


def test_films_play_back_as_they_were_written(tmp_path):
    sound = np.sin(np.arange(22050) * 0.1).astype(np.float32)
    write_film(tmp_path / "a.mp4", title_card(["Hello"], 1, (10, 200, 40)), (sound, 22050))
    shown = media.frames(tmp_path / "a.mp4", rate=RATE, short_side=HEIGHT)
    assert shown.images.shape == (RATE, HEIGHT, WIDTH, 3)
    assert np.abs(shown.images[0, 5, 5].astype(int) - (10, 200, 40)).max() < 12
    assert media.audio(tmp_path / "a.mp4", 22050).samples.std() > 0.3


def test_the_sea_swells_and_ebbs(tmp_path):
    write_wav(tmp_path / "surf.wav", sea_sound(8.0))
    heard = media.audio(tmp_path / "surf.wav", 22050).samples
    assert np.abs(heard).max() == pytest.approx(0.7, abs=0.02)
    loud, quiet = heard[int(0.8 * 22050) : int(1.2 * 22050)], heard[int(2.5 * 22050) : int(3.5 * 22050)]
    assert loud.std() > 3 * quiet.std()
    np.testing.assert_array_equal(sea_sound(1.0), sea_sound(1.0))


def test_drift_pushes_in():
    picture = np.zeros((720, 1280, 3), np.uint8)
    picture[:20] = 255
    frames = list(drift(picture, 1.0))
    assert len(frames) == RATE
    assert frames[0][:5].mean() > 200 > frames[-1][:5].mean()


def test_a_voice_speaks_where_there_is_one():
    said = speak("hello")
    if said is None:
        pytest.skip("no speech synthesiser on this machine")
    samples, rate = said
    assert 0.2 < len(samples) / rate < 3
    assert np.abs(samples).max() > 0.05


def test_a_voice_that_crashes_is_no_voice(monkeypatch):
    monkeypatch.setattr("wordreel.demo.audio.sys.executable", "/bin/false")
    monkeypatch.setattr("wordreel.demo.audio.find_spec", lambda name: True)
    assert speak("hello") is None


def test_without_a_voice_spoken_queries_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("wordreel.demo.collection.speak", lambda text: None)
    samples = {}
    for name in [PurePosixPath(member).name for source in ARCHIVES for member in source.members]:
        samples[name] = tmp_path / name
        write_film(tmp_path / "one.mp4", title_card([], 0.2, (1, 2, 3)))
        samples[name].write_bytes((tmp_path / "one.mp4").read_bytes())
    queries = build_collection(tmp_path / "collection", samples)
    assert queries == tuple(query for query in QUERIES if not query.spoken)
    assert not (tmp_path / "collection" / "announcement.mp4").exists()
    assert (tmp_path / "collection" / "scrapbook.mp4").exists()
