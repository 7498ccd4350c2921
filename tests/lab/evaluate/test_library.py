import json

import numpy as np
import pytest
from tests.search.conftest import ColourModel, store  # noqa: F401 - the fixture

from wordreel.embed.embed_library import embed_library
from wordreel.errors import QueryError, WordreelError
from wordreel.lab.datasets import registry
from wordreel.lab.datasets.json_captions import read_ids
from wordreel.lab.evaluate.library import score, similarities
from wordreel.lab.reports.report import ReportRequest, of_library
from wordreel.retrieval.ranks import ranks_of
from wordreel.search.searcher import Searcher


@pytest.fixture
def searcher(store):  # noqa: F811
    model = ColourModel()
    embed_library(store, model)
    return Searcher.open(store, model)


def test_figures_equal_ranking_by_hand(searcher):
    captions = {f"film{n}{'.mp4' * (n % 2)}": ["red", "green and blue"] for n in range(4)} | {
        "elsewhere": ["red"]
    }
    seen = []
    scored = score(searcher, captions, on_progress=lambda one: seen.append((one.done, one.total)))
    report = of_library(searcher, scored, ReportRequest("films", "wordreel evaluate", []))
    paths = {file.path.rpartition("/")[2]: file.content for file in searcher.store.files()}
    gallery = [paths[f"film{n}.mp4"] for n in range(4)]
    assert list(scored.contents) == gallery
    ranks = []
    for right in range(4):
        for text in ("red", "green and blue"):
            scores = dict(zip(searcher.snapshot.contents(), searcher.scores([text])[0], strict=True))
            row = np.array([[scores[c] for c in gallery]])
            ranks.append(ranks_of(row, np.array([right]))[0])
    assert report.runs[0].ranks.tolist() == ranks
    measured = report.facts["measured"]
    assert (measured["videos"], measured["missing"], measured["captions"]) == (4, 1, 8)
    assert measured["experts"]["colour"] == 1.0
    assert seen == [(8, 8)]
    assert report.facts["breakdown"]["length"][0]["queries"] == 8


def test_similarities_can_be_kept(searcher, tmp_path):
    captions = {f"film{n}": ["red"] for n in range(3)}
    scored = score(searcher, captions, save=tmp_path / "sims.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "sims.npy"), scored.similarities)
    np.testing.assert_array_equal(similarities(searcher, ["red"] * 3, scored.contents), scored.similarities)


def test_similarities_in_blocks_are_those_of_each_text(searcher, monkeypatch):
    texts, contents, seen = ["red ", "green and blue", " blue"], searcher.snapshot.contents(), []
    monkeypatch.setattr("wordreel.lab.evaluate.library.BATCH", 2)
    blocks = similarities(searcher, texts, contents, on_progress=lambda one: seen.append(one.done))
    slowly = np.concatenate([searcher.scores([text]) for text in texts])
    np.testing.assert_allclose(blocks, slowly, rtol=1e-5)
    assert seen == [2, 3]


def test_a_table_may_name_videos_by_their_paths(searcher):
    whole = next(file.path for file in searcher.store.files() if file.path.endswith("film2.mp4"))
    scored = score(searcher, {"clips/film1.mp4": ["red"], whole: ["blue"]})
    assert (scored.videos, scored.missing) == (("clips/film1.mp4", whole), 0)


def test_the_same_bytes_under_two_names_are_one_video(searcher):
    scored = score(searcher, {"film1": ["red"], "film2": ["blue"], "film1.mp4": ["green"]})
    assert scored.videos == ("film1", "film2")
    assert scored.texts == ("red", "green", "blue")
    assert scored.captions.owner.tolist() == [0, 0, 1]


def test_captions_of_strangers_are_refused(searcher):
    with pytest.raises(QueryError, match="none of the captioned ids"):
        score(searcher, {"nobody": ["red"]})


def test_reading_captions(tmp_path):
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"a": "one", "b": ["two", "three"]}))
    assert registry.read(path).captions == {"a": ["one"], "b": ["two", "three"]}
    path.write_text(json.dumps({"dev": {"a": "one"}}))
    assert registry.read(f"{path}:dev").captions == {"a": ["one"]}
    for bad in ("[1]", "{", '{"a": 3}'):
        path.write_text(bad)
        with pytest.raises(WordreelError, match=r"captions|read"):
            registry.read(path)


def test_reading_ids(tmp_path):
    nested = tmp_path / "splits.json"
    nested.write_text(json.dumps({"official": {"test": ["a", "b"]}}))
    assert read_ids(f"{nested}:official.test") == ["a", "b"]
    plain = tmp_path / "ids.txt"
    plain.write_text("a\nb\n")
    assert read_ids(str(plain)) == ["a", "b"]
    for address in (f"{nested}:official.nothing", f"{nested}:official", str(tmp_path / "none.txt")):
        with pytest.raises(WordreelError, match=r"ids|read|stands"):
            read_ids(address)
