"""Switching to a backbone: frames are embedded first, searches go on meanwhile, the switch comes last."""

import os
import shutil
import signal
import time

import numpy as np
import pytest
from tests.fake_backbone import ColourBackbone
from tests.fakes import Colour
from tests.media_files import video
from tests.search.conftest import ColourModel

from wordreel.backbones import installed as backbones
from wordreel.backbones.installed import InstalledBackbone, InstallPlan
from wordreel.catalogue.lock import writer_lock
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.embed.switch_model import models, use
from wordreel.errors import LibraryBusy, LibraryError, QueryError, WeightsMissing
from wordreel.ingest.add import add
from wordreel.ingest.add_report import AddProgress
from wordreel.library import Library
from wordreel.media import Fence
from wordreel.models import model_store
from wordreel.models.joint.model import Joint
from wordreel.runtime.store import WeightStore

NAME = "colours"


class Shelf:
    """A store of one backbone, `colours`, which must be downloaded first."""

    def __init__(self):
        self.here, self.backbone = False, ColourBackbone(NAME)

    def installed(self, store):
        known = InstalledBackbone(NAME, self.backbone.config, "MIT", "painters/colours")
        return {NAME: known} if self.here else {}

    def open_backbone(self, store, name):
        assert self.here
        return self.backbone

    def is_backbone(self, store, source):
        return source in (NAME, "painters/colours")

    def plan(self, store, source, precision="fp32"):
        files = () if self.here else (("model.safetensors", 12_000_000),)
        return InstallPlan(NAME, "painters/colours", files, "MIT", installed=self.here)

    def install(self, store, plan, on_progress=None, export=None):
        self.here = True
        return NAME


def put_up(patch):
    shelf = Shelf()
    for name in ("installed", "open_backbone", "is_backbone", "plan", "install"):
        patch.setattr(backbones, name, getattr(shelf, name))
    return shelf


@pytest.fixture
def shelf(monkeypatch):
    return put_up(monkeypatch)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    for seed in range(3):
        video(folder / f"film{seed}.mp4", seconds=3.0, seed=seed, sound=False)
    return folder


@pytest.fixture(scope="module")
def filled(films, tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled") / "library"
    with LibraryStore.create_or_open(folder) as store, Fence() as fence:
        assert len(add(store, [films], [Colour()], fence).added) == 3
        embed_library(store, ColourModel())
    return folder


@pytest.fixture
def library(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "library")
    return Library(tmp_path / "library")


@pytest.fixture(scope="module")
def switched(filled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("switched") / "library"
    shutil.copytree(filled, folder)
    with pytest.MonkeyPatch.context() as patch:
        put_up(patch)
        Library(folder).use("painters/colours", confirm_download=agree)
    return folder


@pytest.fixture
def used(switched, shelf, tmp_path):
    """A library that searches with the backbone."""
    shelf.here = True
    shutil.copytree(switched, tmp_path / "used")
    return Library(tmp_path / "used")


def agree(plan):
    return True


def test_nothing_is_downloaded_without_consent(library, shelf):
    for confirm in (None, lambda plan: False):
        with pytest.raises(WeightsMissing, match=r"consent.*use colours --yes"):
            library.use(NAME, confirm_download=confirm)
    assert not shelf.here
    assert model_store.in_use(library.store) == "joint"
    assert NAME not in library.store.expert_names()


def test_what_would_be_downloaded_is_told(library, shelf):
    plans = []
    library.use(NAME, confirm_download=lambda plan: plans.append(plan) or True)
    assert [(plan.name, plan.download_bytes, plan.licence) for plan in plans] == [(NAME, 12_000_000, "MIT")]
    library.use(NAME, confirm_download=lambda plan: plans.append(plan) or True)
    assert len(plans) == 1  # installed: nobody is asked again


def test_frames_are_embedded_and_the_model_answers(library, shelf):
    told = []
    used = library.use(NAME, told.append, confirm_download=agree)
    assert (used.name, used.embedded, used.notes) == (NAME, len(library.store.clip_ids()), ())
    stages = [now.stage for now in told]
    assert [isinstance(now, AddProgress) for now in told].index(True) < stages.index("embedding clips")
    tracks = {row.content: row for row in library.store.tracks() if row.expert == NAME}
    assert len(tracks) == 3
    assert all(row.present and row.rows == 3 for row in tracks.values())
    hits = library.search("red", norm="none")
    means = {}
    for content in tracks:
        values = library.store.track(content, NAME).values
        mean = (values / np.linalg.norm(values, axis=1, keepdims=True)).mean(axis=0)
        means[content] = (mean / np.linalg.norm(mean))[0]
    seen = {hit.content: next(why.share for why in hit.why if why.expert == "seen") for hit in hits}
    assert sorted(seen, key=seen.get) == sorted(means, key=means.get)
    assert library.model.name == NAME


def test_the_old_model_finds_everything_meanwhile(library, shelf):
    old = embedding_cache(library.store, ColourModel())
    before = old.load().ids.tolist()

    def look(now):
        assert old.missing() == []
        assert old.load().ids.tolist() == before
        assert model_store.in_use(library.store) == "joint"

    library.use(NAME, look, confirm_download=agree)
    assert old.missing() == []


def test_an_interrupted_switch_resumes(library, shelf):
    def stop(now):
        if isinstance(now, AddProgress) and now.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.use(NAME, stop, confirm_download=agree)
    assert model_store.in_use(library.store) == "joint"
    done = {row.content for row in library.store.tracks() if row.expert == NAME}
    assert 0 < len(done) < 3
    totals = []
    library.use(
        NAME, lambda now: isinstance(now, AddProgress) and totals.append(now.total), confirm_download=agree
    )
    assert set(totals) == {3 - len(done)}
    assert model_store.in_use(library.store) == NAME


def test_killed_at_any_moment_the_same_command_resumes(library, shelf):
    shelf.here = True
    for delay in (0.02, 0.15, 0.4, 0.8):
        child = os.fork()
        if child == 0:
            try:
                with LibraryStore.open(library.path) as mine:
                    use(mine, WeightStore(), NAME)
                os._exit(0)
            finally:
                os._exit(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with LibraryStore.open(library.path) as now:
            if model_store.in_use(now) == NAME:
                assert embedding_cache(now, model_store.open_model(now, WeightStore())).missing() == []
            else:
                assert embedding_cache(now, ColourModel()).missing() == []
    library.use(NAME)
    assert len(library.search("red")) == 3


def test_add_extracts_them_from_then_on(library, used, tmp_path):
    assert NAME not in library._default_experts()
    assert used._default_experts()[-1] == NAME
    video(tmp_path / "new" / "late.mp4", seed=9)
    used.add(tmp_path / "new", experts=["shots", *used._default_experts()[-1:]])
    late = used.store.file(tmp_path / "new" / "late.mp4")
    assert {row.expert for row in used.store.tracks(late.content)} == {"shots", NAME}
    assert late.content in {hit.content for hit in used.search("red")}


def test_a_library_without_its_backbone_says_so_and_opens_with_others(used, shelf, tmp_path):
    shelf.here = False
    there = Library(used.path)
    for call in (lambda: there.search("red"), lambda: there.add(tmp_path), lambda: there.model):
        with pytest.raises(
            WeightsMissing, match=r"searches with colours, .*not installed.*use painters/colours"
        ):
            call()
    assert len(Library(used.path, model=ColourModel()).search("red")) == 3
    there.use("joint")
    assert Library(used.path).model.name == "joint"


def test_frames_of_another_version_do_not_count(used, shelf):
    shelf.backbone = ColourBackbone(NAME, fingerprint="b" * 16)
    again = Library(used.path)
    with pytest.raises(QueryError, match=r"as it is installed now.*use colours"):
        again.search("red")
    again.use(NAME)
    assert len(Library(used.path).search("red")) == 3


def test_embeddings_without_frames_are_made_again(used, tmp_path):
    """A file that was added without the backbone has no picture; `use` looks at it and embeds it again."""
    video(tmp_path / "new" / "late.mp4", seed=9)
    used.add(tmp_path / "new", experts=["shots"])
    late = used.store.file(tmp_path / "new" / "late.mp4").content
    ids = [clip.id for clip in used.store.clips(late)]
    cache = embedding_cache(used.store, used.model)
    assert not cache.load().available[np.isin(cache.load().ids, ids), 0].any()
    assert used.use(NAME).embedded == len(ids)
    assert cache.load().available[np.isin(cache.load().ids, ids), 0].all()


def test_files_that_are_gone_or_changed_are_noted(library, shelf, films, tmp_path):
    copy = tmp_path / "copy.mp4"
    copy.write_bytes((films / "film0.mp4").read_bytes() + b"\0")
    with Fence() as fence:
        add(library.store, [copy], [Colour()], fence)
    copy.unlink()
    (note,) = library.use(NAME, confirm_download=agree).notes
    assert "1 files have moved or changed" in note
    assert len(library.search("red")) == 4  # found by what else is known of it


def test_a_busy_library_is_refused_before_a_download(library, shelf):
    with writer_lock(library.path / "lock"), pytest.raises(LibraryBusy):
        library.use(NAME, confirm_download=agree)
    assert not shelf.here


def test_imported_features_have_no_frames(library, shelf, monkeypatch):
    monkeypatch.setattr(LibraryStore, "only_imported", lambda self: 5)
    with pytest.raises(LibraryError, match="no frames to embed"):
        library.use(NAME, confirm_download=agree)
    assert not shelf.here


def test_the_list_has_backbones(used):
    rows = {row.name: row for row in models(used.store, WeightStore())}
    assert rows[NAME].in_use
    assert rows[NAME].embedded == rows[NAME].clips > 0
    assert not rows["joint"].in_use


def test_pictures_moments_look_alikes_and_captions(used, films, tmp_path):
    import cv2

    red = tmp_path / "red.png"
    cv2.imwrite(str(red), np.full((48, 64, 3), (0, 0, 250), np.uint8))
    best = used.search(like=red)[0]
    names = {hit.content: hit.score for hit in used.search(like=red, limit=3)}
    assert len(names) == 3
    assert best.score == max(names.values())
    assert {reason.expert for reason in best.why} == {"seen"}
    assert used.search(like=films / "film0.mp4", second=1.0)
    timeline = used.where(films / "film0.mp4", "blue")
    assert timeline.duration == pytest.approx(3.0, abs=0.2)
    ranked = used.caption(red, ["a blue wall", "a red wall", "a green wall"])
    assert ranked[0].text == "a red wall"
    assert ranked[0].why[0].what == "the picture"
    assert used.search("red", moments=True)
    assert used.search("red", then="green").norm == "none"


@pytest.mark.filterwarnings("ignore:similarities reach")  # pure colours are nearer than any real picture
def test_a_bank_gives_confidences(library, shelf, monkeypatch):
    texts = [f"{a} {b} {n}" for a in ("red", "green", "blue") for b in ("dog", "cat") for n in range(20)]
    monkeypatch.setattr(Joint, "eyes", "")  # which this library does not have
    library.banks.build("mine", texts, "a test")
    told = []
    library.use(NAME, told.append, confirm_download=agree)
    assert any(now.stage == "embedding queries" for now in told)  # so that the first search does not wait
    hits = library.search("red")
    assert all(0 <= hit.confidence <= 1 for hit in hits)
    assert library.search("red", norm="dis").norm.startswith("querybank")
