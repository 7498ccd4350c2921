import json

import numpy as np
import pytest
from tests.search.conftest import ColourModel, store  # noqa: F401 - the fixture

from wordreel.errors import QueryError
from wordreel.evaluate.captions import read_captions, read_ids
from wordreel.evaluate.library import evaluate, table
from wordreel.evaluate.ranks import ranks_of
from wordreel.search.engine import Engine
from wordreel.search.refresh import refresh


def test_figures_equal_ranking_by_hand(store):  # noqa: F811
    model = ColourModel()
    refresh(store, model)
    engine = Engine(store, model)
    captions = {f"film{n}{'.mp4' * (n % 2)}": ["red", "green and blue"] for n in range(4)} | {
        "elsewhere": ["red"]
    }
    seen = []
    found = evaluate(engine, captions, lambda done, total: seen.append((done, total)))
    gallery = [file.content for n in range(4) for file in store.files() if file.path.endswith(f"film{n}.mp4")]
    ranks = []
    for right, content in enumerate(gallery):
        for text in ("red", "green and blue"):
            scores = dict(zip(engine.contents(), engine.scores([text])[0], strict=True))
            row = np.array([[scores[c] for c in gallery]])
            ranks.append(ranks_of(row, np.array([right]))[0])
        assert content
    assert found.t2v.mean_rank == pytest.approx(np.mean(ranks))
    assert (found.videos, found.missing, found.t2v.queries) == (4, 1, 8)
    assert found.experts["colour"] == 1.0
    assert seen == [(8, 8)]
    assert f"| {found.t2v.r1:.1f} |" in table(found)


def test_captions_of_strangers_are_refused(store):  # noqa: F811
    model = ColourModel()
    refresh(store, model)
    with pytest.raises(QueryError, match="none of the captioned ids"):
        evaluate(Engine(store, model), {"nobody": ["red"]})


def test_reading_captions(tmp_path):
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"a": "one", "b": ["two", "three"]}))
    assert read_captions(str(path)) == {"a": ["one"], "b": ["two", "three"]}
    path.write_text(json.dumps({"dev": {"a": "one"}}))
    assert read_captions(f"{path}:dev") == {"a": ["one"]}
    for bad in ("[1]", "{", '{"a": 3}'):
        path.write_text(bad)
        with pytest.raises(QueryError, match=r"captions|nothing can be read"):
            read_captions(str(path))


def test_reading_ids(tmp_path):
    nested = tmp_path / "splits.json"
    nested.write_text(json.dumps({"official": {"test": ["a", "b"]}}))
    assert read_ids(f"{nested}:official.test") == ["a", "b"]
    plain = tmp_path / "ids.txt"
    plain.write_text("a\nb\n")
    assert read_ids(str(plain)) == ["a", "b"]
    for address in (f"{nested}:official.nothing", f"{nested}:official", str(tmp_path / "none.txt")):
        with pytest.raises(QueryError, match=r"ids|nothing can be read"):
            read_ids(address)
