"""Captions that ask for pictures and sounds: the same commands, on libraries of made-up files."""

import json

import numpy as np
import pytest
from tests.cli.invoke import shell, shell_json
from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.search.conftest import ColourModel

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.search.searcher import Searcher

WORDS = ("red", "green", "blue")
KARPATHY = ("dataset_coco.json", "dataset_flickr30k.json", "dataset_flickr8k.json")


def sentences(number):
    """Five captions; which colours they name says something about the item, and not too much."""
    return [f"{WORDS[(number + n) % 3]} {WORDS[(number * n) % 3]} thing {number} {n}" for n in range(5)]


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """Ten test pictures and ten test sounds in a library, with the annotations of every protocol."""
    data, media = tmp_path / "data", tmp_path / "media"
    data.mkdir()
    images = []
    for n in range(20):
        split = "test" if n < 10 else "train"
        name = f"COCO_{n:012}.jpg"
        texts = [{"raw": text} for text in sentences(n)]
        images.append({"filename": name, "split": split, "sentences": texts})
        if n < 10:
            write_media(media / name, kind="image", seed=100 + n)
            write_media(media / f"sound{n:06}.wav", kind="audio", seed=n, seconds=10.0)
    for name in KARPATHY:
        (data / name).write_text(json.dumps({"images": images}))
    rows = [f"{9 * n + k},sound{n:06},{n},{text}" for n in range(10) for k, text in enumerate(sentences(n))]
    (data / "test.csv").write_text("\n".join(["audiocap_id,youtube_id,start_time,caption", *rows]) + "\n")
    (data / "final_filtered_test_list.txt").write_text("\n".join(f"sound{n:06}" for n in range(10)))
    (data / "train.json").write_text(json.dumps({f"t{n}": sentences(n) for n in range(10, 20)}))
    store = LibraryStore.create_or_open(tmp_path / "library")
    add(store, [media], [Colour(), Talk()], FakeFence())
    embed_library(store, ColourModel())
    monkeypatch.setattr(Library, "searcher", lambda self: Searcher.open(store, ColourModel()))
    yield data, tmp_path
    store.close()


@pytest.mark.parametrize("protocol", ["coco-5k", "flickr30k", "flickr8k", "audiocaps"])
def test_captions_ask_for_pictures_and_sounds(collection, protocol):
    data, folder = collection
    words = ["evaluate", "captions", protocol, "--data", data, "--library", folder / "library"]
    words += ["--bank", data / "train.json", "--method", "dis", "--method", "test-is", "--method", "dsl"]
    facts = shell_json(*words, "--save", folder / "sims.npy")
    sims = np.load(folder / "sims.npy")
    assert sims.shape == (50, 10)
    modality = "audio" if protocol == "audiocaps" else "image"
    rows = [(run["direction"], run["transductive"], run["modality"]) for run in facts["runs"]]
    late = [(way, True, modality) for _ in range(2) for way in ("t2v", "v2t")]
    assert rows == [("t2v", False, modality), ("v2t", False, modality), ("t2v", False, modality), *late]
    # The same as the saved matrix gives.
    again = shell_json(
        "evaluate",
        "matrix",
        folder / "sims.npy",
        "--modality",
        modality,
        "--method",
        "test-is",
        "--method",
        "dsl",
    )
    assert [run["figures"] for run in again["runs"]] == [
        run["figures"] for run in facts["runs"] if not run["postprocessing"].startswith("querybank")
    ]
    shown = shell(*words)
    assert f"text → {modality} " in shown.stdout
    assert f"{modality} → text (ce)" in shown.stdout
    assert "10 items instead of" in shown.stderr
    assert facts["runs"][2]["postprocessing"] == "querybank(train.json, 50 queries, method=dis, beta=20, k=1)"


def test_cocos_1k_figures_are_means_over_five_folds(collection):
    data, folder = collection
    words = ["--library", folder / "library", "--bank", data / "train.json", "--method", "is"]
    facts = shell_json(
        "evaluate", "captions", "coco-1k", "--data", data, *words, "--out", folder / "out" / "coco"
    )
    whole = shell_json(
        "evaluate", "captions", "coco-5k", "--data", data, *words, "--save", folder / "sims.npy"
    )
    assert (facts["measured"]["folds"], facts["measured"]["videos"], facts["measured"]["captions"]) == (
        5,
        10,
        50,
    )
    same = shell_json("evaluate", "matrix", folder / "sims.npy", "--folds", 5, "--modality", "image")
    assert [run["figures"] for run in facts["runs"][:2]] == [run["figures"] for run in same["runs"]]
    assert facts["runs"][2]["gallery"] == 2
    assert whole["runs"][2]["gallery"] == 10
    assert "text → image" in (folder / "out" / "coco.md").read_text()
