"""Captions of a video: the ranking equals the naive one, plain and against a bank of videos."""

import json

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Talk, write_media

from wordreel.embed.embed_library import tracks_of
from wordreel.errors import DatasetError, QueryError
from wordreel.hubness import make_method
from wordreel.ingest.extract import extract_file
from wordreel.search import caption as module
from wordreel.search.caption import NORMS, read_texts
from wordreel.search.caption import rank_captions as caption
from wordreel.search.query import VideoMoment
from wordreel.search.searcher import Searcher
from wordreel.search.video_query import encode_video

pytestmark = pytest.mark.filterwarnings("ignore:similarities reach")  # colours are no cosines

TEXTS = ["red", "green", "blue", "red and green", "green, blue", "blue and red", "nothing", "red green blue"]


@pytest.fixture
def sample(store, model, films):
    return encode_video(store, model, VideoMoment(films[3]), None)


def fits(model, text, tracks, clips):
    """The best item of a video for a caption, by the definition."""
    query = model.encode([text])[0]
    vectors, available = model.embed(tracks, clips)
    found = []
    for row in range(len(clips)):
        top = sum(
            query.weights[m] * query.vectors[m] @ vectors[row, m] for m in range(2) if available[row, m]
        )
        bottom = sum(query.weights[m] for m in range(2) if available[row, m])
        found.append(float(top / bottom) if bottom else 0.0)
    return max(found)


def order(scores):
    return [TEXTS[number] for number in sorted(range(len(TEXTS)), key=lambda n: (-scores[n], n))]


def test_ranking_equals_the_naive_one(searcher, model, sample):
    expected = [fits(model, text, sample.tracks, sample.clips) for text in TEXTS]
    found = caption(searcher, sample, TEXTS, 100)
    assert [one.text for one in found] == order(expected)
    assert [one.score for one in found] == pytest.approx(sorted(expected, reverse=True), abs=1e-5)
    assert [one.rank for one in found] == list(range(1, len(TEXTS) + 1))
    assert [one.text for one in caption(searcher, sample, TEXTS, 2)] == order(expected)[:2]
    for one in found:
        assert sum(reason.share for reason in one.why) == pytest.approx(one.score, abs=1e-5)
        assert any((one.start, one.end) == (clip.start, clip.end) and not clip.whole for clip in sample.clips)


@pytest.mark.parametrize("norm", [name for name in NORMS if name != "none"])
def test_normalised_by_a_bank_of_the_other_videos(searcher, store, model, sample, norm):
    others = sorted({clip.content for clip in store.clips()} - {sample.content})
    bank = np.array(
        [
            [
                fits(model, text, tracks_of(store, model, content), [c.clip for c in store.clips(content)])
                for text in TEXTS
            ]
            for content in others
        ]
    )
    row = np.array([[fits(model, text, sample.tracks, sample.clips) for text in TEXTS]])
    beta = 15.0 if norm in ("is", "dis", "sinkhorn") else None
    method = make_method(norm) if beta is None else make_method(norm, beta=beta)
    scored = method.apply(row, method.fit(bank))
    wanted = (scored if isinstance(scored, np.ndarray) else scored.ranking_scores)[0]
    found = {one.text: one for one in caption(searcher, sample, TEXTS, 100, norm, beta)}
    for number, text in enumerate(TEXTS):
        assert found[text].score == pytest.approx(wanted[number], abs=1e-3)
        assert found[text].norm.startswith("videobank(6 videos, method=")


def test_inverted_softmax_by_hand(searcher, store, model, sample):
    """s − (log Σ over the bank of exp β s) / β, up to a constant of the ranking."""
    contents = {clip.content for clip in store.clips()} - {sample.content}
    scores = []
    for text in TEXTS:
        bank = [
            fits(model, text, tracks_of(store, model, content), [c.clip for c in store.clips(content)])
            for content in contents
        ]
        scores.append(
            fits(model, text, sample.tracks, sample.clips) - np.log(np.exp(np.multiply(20, bank)).sum()) / 20
        )
    assert [one.text for one in caption(searcher, sample, TEXTS, 100, "is", 20.0)] == order(scores)


def test_beta_is_chosen_without_labels(searcher, sample):
    found = caption(searcher, sample, TEXTS, 3, "dis")
    assert "method=dis, beta=" in found[0].norm


def test_a_large_library_is_sampled(searcher, sample, monkeypatch):
    monkeypatch.setattr(module, "BANK", 3)
    assert caption(searcher, sample, TEXTS, 1, "csls")[0].norm.startswith("videobank(3 videos")


def test_a_file_outside(searcher, store, model, tmp_path):
    film = write_media(tmp_path / "new.mp4", seconds=30.0, seed=5)
    sample = encode_video(
        store,
        model,
        VideoMoment(film),
        lambda path, model: extract_file(path, [Colour(), Talk()], FakeFence()),
    )
    expected = [fits(model, text, sample.tracks, sample.clips) for text in TEXTS]
    assert [one.text for one in caption(searcher, sample, TEXTS, 100)] == order(expected)
    assert caption(searcher, sample, TEXTS, 1, "nnn")[0].norm.startswith("videobank(7 videos")


@pytest.mark.parametrize(
    ("texts", "limit", "norm", "beta", "why"),
    [
        ([], 1, "none", None, "no captions"),
        (["a", "  "], 1, "none", None, "empty"),
        (["x" * 20_000], 1, "none", None, "characters"),
        (["a"], 0, "none", None, "1 or more"),
        (["a"], 1, "dsl", None, "needs more"),
        (["a"], 1, "test-is", None, "needs more"),
        (["a"], 1, "wishful", None, "not known"),
        (["a"], 1, "csls", 3.0, "no beta"),
    ],
)
def test_what_cannot_be_answered(searcher, sample, texts, limit, norm, beta, why):
    with pytest.raises(QueryError, match=why):
        caption(searcher, sample, texts, limit, norm, beta)


def test_no_other_videos(searcher, store, model, sample, films):
    store.remove([file.path for file in store.files() if file.content != sample.content])
    alone = Searcher.open(store, model)
    assert caption(alone, sample, TEXTS, 1)[0].text
    with pytest.raises(QueryError, match="there are none"):
        caption(alone, sample, TEXTS, 1, "dis")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "\ufeffa dog \n\na  cat\r\na dog\n"),
        ("a.json", json.dumps(["a dog", "a cat"])),
        ("a.json", json.dumps({"v1": ["a dog"], "v2": "a cat"})),
        ("a.json", json.dumps([{"caption": "a dog", "id": 3}, {"text": "a cat"}])),
        ("a.jsonl", '{"caption": "a dog"}\n"a cat"\n'),
        ("a.csv", 'path,caption\nx.mp4,a dog\ny.mp4,"a cat"\n'),
        ("a.tsv", "Sentence\tid\na dog\t1\na cat\t2\n"),
    ],
)
def test_captions_from_files(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_texts(str(tmp_path / name)) == ["a dog", "a cat"]


def test_captions_inside_a_json_file(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"info": {"year": 1}, "test": {"v": ["a dog"]}}))
    assert read_texts(f"{tmp_path}/a.json:test") == ["a dog"]
    with pytest.raises(DatasetError, match="must hold texts"):
        read_texts(f"{tmp_path}/a.json")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", " \n"), ("a.json", "[]"), ("a.json", "[1]"), ("a.json", "{"), ("a.jsonl", "{}\n"),
     ("a.csv", "path,words\na,b\n"), ("a.csv", "path,caption\na\n"), ("a.txt", "a\0b")],
)  # fmt: skip
def test_files_without_captions(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=r"a\."):
        read_texts(str(tmp_path / name))
