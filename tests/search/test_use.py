"""Switching models: embedded first, switched last, whatever happens in between."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.search.conftest import ColourModel

from wordreel.catalogue.lock import writer_lock
from wordreel.catalogue.store import LibraryStore
from wordreel.embed import embed_library as embedding_module
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.embed.switch_model import models, switch
from wordreel.errors import LibraryBusy, LibraryError, WeightsError, WordreelError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.maintain.verify import verify
from wordreel.models import model_store
from wordreel.runtime.store import WeightStore

SLOW = "fedcba9876543210"


class SlowModel(ColourModel):
    """The same colours under another name, a few milliseconds a video."""

    name = "slow"
    fingerprint = SLOW

    def embed(self, tracks, clips):
        time.sleep(0.01)
        return super().embed(tracks, clips)


def test_settings_are_kept(store):
    assert store.setting("model") is None
    store.set_setting("model", "a")
    store.set_setting("model", "b")
    assert store.setting("model") == "b"
    with LibraryStore.open(store.path) as again:
        assert again.setting("model") == "b"


def test_a_new_library_uses_the_default(store):
    assert model_store.in_use(store) == "joint"


def test_switching_embeds_first(store, monkeypatch):
    seen = []
    assert switch(store, SlowModel(), SLOW, lambda now: seen.append((model_store.in_use(store), now.done)))
    assert {before for before, _ in seen} == {"joint"}
    assert model_store.in_use(store) == SLOW
    assert embedding_cache(store, SlowModel()).missing() == []
    assert switch(store, ColourModel(), "colours") == len(store.clip_ids())
    assert switch(store, SlowModel(), SLOW) == 0  # the caches stay: back at once


def test_an_interrupted_switch_goes_on(store, monkeypatch):
    monkeypatch.setattr(embedding_module, "BATCH", 4)
    clips = len(store.clip_ids())

    def stop(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        switch(store, SlowModel(), SLOW, stop)
    assert model_store.in_use(store) == "joint"
    left = len(embedding_cache(store, SlowModel()).missing())
    assert 0 < left < clips
    assert switch(store, SlowModel(), SLOW) == left
    assert model_store.in_use(store) == SLOW


def test_killed_at_any_moment_the_old_model_stays(store, monkeypatch):
    monkeypatch.setattr(embedding_module, "BATCH", 4)
    rng, kills = random.Random(1), 0
    while kills < 6:
        child = os.fork()
        if child == 0:
            try:
                with LibraryStore.open(store.path) as mine:
                    switch(mine, SlowModel(), SLOW)
                os._exit(0)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, 0.12))
        os.kill(child, signal.SIGKILL)
        killed = os.waitpid(child, 0)[1] != 0
        kills += killed
        whole = not embedding_cache(store, SlowModel()).missing()
        assert whole or model_store.in_use(store) == "joint"
        if not killed:
            assert model_store.in_use(store) == SLOW
        if model_store.in_use(store) == SLOW or whole:
            embedding_cache(store, SlowModel()).clear()
            store.set_setting("model", "joint")
    switch(store, SlowModel(), SLOW)
    assert model_store.in_use(store) == SLOW
    embed_library(store, ColourModel())
    mine, plain = embedding_cache(store, SlowModel()).load(), embedding_cache(store, ColourModel()).load()
    np.testing.assert_array_equal(np.sort(mine.ids), np.sort(plain.ids))
    np.testing.assert_array_equal(mine.vectors[np.argsort(mine.ids)], plain.vectors[np.argsort(plain.ids)])
    assert [problem for problem in verify(store) if not problem.note] == []


def test_nobody_switches_while_another_writes(store):
    with writer_lock(store.path / "lock"), pytest.raises(LibraryBusy):
        switch(store, SlowModel(), SLOW)
    assert model_store.in_use(store) == "joint"


def test_values_that_are_no_numbers(store):
    class Mad(SlowModel):
        def embed(self, tracks, clips):
            vectors, available = super().embed(tracks, clips)
            return vectors * np.float32("nan"), available

    with pytest.raises(WeightsError, match="finite"):
        switch(store, Mad(), SLOW)
    assert model_store.in_use(store) == "joint"


def test_the_list_tells_what_is_embedded(store):
    switch(store, SlowModel(), "joint")
    embedding_cache(store, SlowModel()).drop(store.clip_ids()[:3])
    rows = {row.fingerprint: row for row in models(store, WeightStore())}
    clips = len(store.clip_ids())
    assert (rows[SLOW].embedded, rows[SLOW].clips, rows[SLOW].name) == (clips - 3, clips, "")
    (joint,) = [row for row in rows.values() if row.name == "joint"]
    assert (joint.in_use, joint.embedded) == (True, 0)


def test_torch_is_asked_for_by_name(store, tmp_path):
    """Without torch a checkpoint is refused with the command that installs it; the rest goes on."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from wordreel.library import Library\n"
        "from wordreel.errors import WordreelError\n"
        f"library = Library({str(store.path)!r})\n"
        f"try: library.use({str(folder)!r})\n"
        "except WordreelError as error: print(error)\n"
        "print(library.use('joint').name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'wordreel[train]'" in done.stdout, done.stderr
    assert done.stdout.endswith("joint\n")


# With trained models


@pytest.fixture
def checkpoint(tmp_path):
    pytest.importorskip("torch")
    from tests.lab.models import twins
    from tests.lab.models.small import model

    from wordreel.lab.models import checkpoint as checkpoints
    from wordreel.lab.models.config import CEConfig, ConcatConfig, ExpertConfig, TextConfig

    def make(name="pets", experts=(("colour", 4), ("talk", 2)), seed=0, kind="ce"):
        made = tuple(ExpertConfig(one, dim) for one, dim in experts)
        text = TextConfig("vectors", 3, "vlad", 2, source="word2vec:words.txt")
        config = CEConfig(made, text, 8) if kind == "ce" else ConcatConfig(made, text)
        folder = tmp_path / "runs" / f"{name}-{seed}-{kind}"
        checkpoints.save(folder, twins.stir(model(config)), name, {"seed": seed})
        (folder / "words.txt").write_text("dog 1 0 0\ncat 0 1 0\nred 0 0 1\n")
        (folder / "optimiser.state").write_text("large and of no use for searching")
        return folder

    return make


@pytest.fixture
def library(store):
    return Library(store.path)


def test_a_checkpoint_is_copied_and_answers(library, checkpoint):
    folder = checkpoint()
    used = library.use(folder)
    assert (used.name, used.notes, used.embedded) == ("pets", (), len(library.store.clip_ids()))
    place = library.path / "models" / used.fingerprint
    assert sorted(path.name for path in place.iterdir()) == ["model.json", "model.safetensors", "words.txt"]
    hits = [(str(hit.path), hit.score) for hit in library.search("a red dog")]
    assert len(hits) == 7
    assert [match.score for match in library.search(like=hits[0][0])]
    assert library.caption(hits[0][0], ["a dog", "a cat"], norm="dis", limit=1)[0].norm.startswith(
        "videobank(6"
    )
    shutil.rmtree(folder)
    again = Library(library.path, create=False)
    assert again.model.fingerprint == used.fingerprint
    assert [(str(hit.path), hit.score) for hit in again.search("a red dog")] == hits
    assert verify(library.store) == []


def test_back_and_forth_by_name(library, checkpoint):
    first, second = library.use(checkpoint()), library.use(checkpoint(name="zoo", seed=1))
    assert library.use("pets").embedded == 0
    assert library.model.fingerprint == first.fingerprint
    assert library.use(second.fingerprint).embedded == 0
    rows = {row.name: row for row in library.models() if row.name}
    assert [name for name, row in rows.items() if row.in_use] == ["zoo"]
    assert rows["pets"].embedded == rows["zoo"].embedded == len(library.store.clip_ids())
    library.use(checkpoint(name="zoo", seed=2))
    with pytest.raises(LibraryError, match="2 models of this library are called 'zoo'"):
        library.use("zoo")
    with pytest.raises(LibraryError, match="one of joint, pets, zoo"):
        library.use("unheard-of")


def test_what_is_added_later_is_embedded_by_the_model_in_use(library, checkpoint, tmp_path):
    library.use(checkpoint())
    film = write_media(tmp_path / "media" / "later.mp4", seconds=15.0, seed=60)
    add(library.store, [film], [Colour(), Talk()], FakeFence())
    assert str(film) in {str(hit.path) for hit in Library(library.path).search("dog", limit=100)}


def test_banks_follow_the_model(library, checkpoint, monkeypatch):
    library.use(checkpoint())
    library.banks.build("mine", ["a dog", "a red cat", "dog and cat"], "a test")
    plain = library.search("dog", norm="none")
    corrected = library.search("dog", norm="csls", bank="mine")
    assert corrected[0].norm.startswith("querybank(mine, 3 queries")
    assert {str(hit.path) for hit in plain} == {str(hit.path) for hit in corrected}


def test_experts_that_are_missing(library, checkpoint):
    with pytest.raises(LibraryError, match=r"no motion, smell; .*--experts motion,smell"):
        library.use(checkpoint("none", (("motion", 4), ("smell", 2))))
    assert not (library.path / "models").exists()
    used = library.use(checkpoint("some", (("motion", 4), ("colour", 4))))
    assert "no motion" in used.notes[0]
    assert "--experts motion" in used.notes[0]
    with pytest.raises(LibraryError, match="colour of 9 numbers, where the library has 4"):
        library.use(checkpoint("wide", (("colour", 9),)))
    assert library.model.fingerprint == used.fingerprint


def test_an_empty_library_takes_any_model(tmp_path, checkpoint):
    empty = Library(tmp_path / "empty")
    assert "no colour, talk" in empty.use(checkpoint()).notes[0]
    assert list(empty.search("dog")) == []


def test_experts_joined_into_one_row(library, checkpoint):
    library.use(checkpoint("joined", kind="concat"))
    assert library.model.experts == ("all",)
    gallery = library.searcher().snapshot.gallery
    assert gallery.available.all()
    assert np.abs(gallery.vectors).sum() > 0
    assert len(library.search(like=library.videos()[0].paths[0])) == 6


def test_training_folders_are_understood(library, checkpoint, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(checkpoint(), run / "best")
    assert library.use(run).name == "pets"


def test_a_kill_while_copying_leaves_nothing_half(library, checkpoint, monkeypatch):
    folder = checkpoint()

    def killed(path, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(model_store, "atomic_write", killed)
        with pytest.raises(KeyboardInterrupt):
            library.use(folder)
    assert model_store.in_use(library.store) == "joint"
    assert model_store.stored_models(library.store) == []
    used = library.use(folder)
    assert [path.name for path in (library.path / "models").iterdir()] == [used.fingerprint]


def test_a_damaged_copy_is_told_and_mended(library, checkpoint):
    folder = checkpoint()
    used = library.use(folder)
    place = library.path / "models" / used.fingerprint
    weights = bytearray((place / "model.safetensors").read_bytes())
    weights[-3] ^= 0xFF
    (place / "model.safetensors").write_bytes(bytes(weights))
    with pytest.raises(WeightsError, match="wordreel use joint"):
        _ = Library(library.path).model
    (place / "model.safetensors").unlink()
    with pytest.raises(WordreelError, match="wordreel use joint"):
        _ = Library(library.path).model
    assert library.use(folder).embedded == 0
    assert len(Library(library.path).search("dog")) == 7
    (place / "words.txt").write_text("dog 0 1 0\n")
    with pytest.raises(WeightsError, match="named after"):
        _ = Library(library.path).model


def test_words_outside_the_folder_are_noted(library, checkpoint, tmp_path):
    folder = checkpoint()
    from wordreel.lab.models import checkpoint as checkpoints

    module, facts = checkpoints.load_module(folder)
    shutil.move(folder / "words.txt", tmp_path / "words.txt")
    config = json.loads(json.dumps(facts["config"]))
    config["text"]["source"] = f"word2vec:{tmp_path / 'words.txt'}"
    module.config = checkpoints.from_json(config)
    checkpoints.save(folder, module, "pets")
    assert str(tmp_path / "words.txt") in library.use(folder).notes[0]
