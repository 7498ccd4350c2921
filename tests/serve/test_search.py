"""Searching over HTTP gives what searching from Python gives."""

import hashlib
import json
from urllib.parse import quote

import numpy as np
import pytest
from tests.serve.conftest import opened, running

from wordreel.search.scoring import PLAIN
from wordreel.serve import schemas


def test_hits_are_those_of_the_library(site, library):
    expected = opened(library).search("a red and blue thing", limit=10)
    for answer in (
        site.get("/api/search?text=a+red+and+blue+thing&limit=10"),
        site.post("/api/search", {"text": "a red and blue thing", "limit": 10}),
    ):
        assert answer.status == 200
        found = answer.json
        assert [hit["content"] for hit in found["hits"]] == [hit.content for hit in expected]
        assert [hit["score"] for hit in found["hits"]] == pytest.approx([hit.score for hit in expected])
        assert found["total_estimate"] == len(expected) == 4
        took = found["took"]
        assert 0 <= took["queue_ms"] <= took["total_ms"]
        hit = found["hits"][0]
        assert 0 <= hit["start"] < hit["end"] <= hit["duration"]
        assert sum(hit["weights"].values()) == pytest.approx(1, abs=1e-3)
        assert sum(reason["share"] for reason in hit["why"]) == pytest.approx(hit["score"], abs=1e-5)
        for key in ("thumb", "preview", "media"):
            assert site.get(hit[key]).status == 200


@pytest.mark.parametrize("text", ['red "dogs"', "red -blue", "rot without blue", "un chat noir", "red dogs"])
def test_every_surface_gives_one_answer(site, library, text):
    expected = [(hit.content, hit.start, hit.score, hit.confidence) for hit in opened(library).search(text)]
    found = site.post("/api/search", {"text": text}).json
    assert [(h["content"], h["start"], h["score"], h["confidence"]) for h in found["hits"]] == expected
    assert tuple(found["notices"]) == opened(library).search(text).notices
    assert found["hits"]


@pytest.mark.parametrize("question", ["a+red+and+blue+thing", "red&then=blue", "red&folder=/nowhere"])
def test_answers_have_the_fields_that_the_api_documents(site, question):
    answer = site.get(f"/api/search?text={question}")
    assert schemas.SearchResponse.model_validate(answer.json).model_dump(mode="json") == answer.json


def test_look_alikes_have_the_fields_that_the_api_documents(site):
    content = site.get("/api/search?text=red&limit=1").json["hits"][0]["content"]
    answer = site.get(f"/api/search?like={content}&second=1")
    assert answer.json["hits"][0]["like"] is not None
    assert schemas.SearchResponse.model_validate(answer.json).model_dump(mode="json") == answer.json


def test_dates_sort_hits_and_lists(site, library):
    files = {file.content: file for file in opened(library).store.files()}
    hits = site.get("/api/search?text=red&sort=date").json["hits"]
    assert [hit["captured"] for hit in hits] == sorted((hit["captured"] for hit in hits), reverse=True)
    assert all(hit["captured"] == files[hit["content"]].captured for hit in hits)
    listed = site.get("/api/videos?sort=date").json["items"]
    assert [item["captured"] for item in listed] == sorted((f.captured for f in files.values()), reverse=True)
    shown = site.get(f"/api/videos/{listed[0]['content']}").json
    assert (shown["captured"], shown["captured_from"]) == (listed[0]["captured"], "file time")
    assert site.get("/api/search?text=red&sort=size").status == 422


def test_pages_are_parts_of_the_whole(site):
    whole = site.get("/api/search?text=green&moments=true&limit=20").json["hits"]
    assert len(whole) > 5
    parts = [
        hit
        for offset in range(0, len(whole), 3)
        for hit in site.get(f"/api/search?text=green&moments=true&limit=3&offset={offset}").json["hits"]
    ]
    assert parts == whole
    assert site.get("/api/search?text=green&offset=500").json["hits"] == []


def test_then_finds_pairs_in_order(site):
    found = site.get("/api/search?text=red&then=blue").json["hits"]
    assert found
    for hit in found:
        assert hit["then"]["start"] >= hit["end"]
    assert site.get("/api/search?then=blue").code == "bad_query"
    assert site.get("/api/search?text=red&then=blue&moments=true").code == "bad_query"


def test_filters(site, ready):
    def paths(query):
        return {hit["path"] for hit in site.get(f"/api/search?text=red&{query}").json["hits"]}

    everything = paths("")
    assert paths("min_duration=20") | paths("max_duration=19.9") == everything
    assert len(paths("min_duration=20")) == 2
    assert paths("has_speech=true") | paths("has_speech=false") == everything
    assert {p[-9:] for p in paths("has_speech=false")} == {"film1.mp4"}
    assert paths("has_text=true") == set()
    assert paths("expert=colour") == everything
    assert paths("expert=nobody") == set()
    assert len(paths(f"folder={quote(str(ready[1] / 'part0'))}")) == 2
    assert paths("after=2000-01-01") == everything
    assert paths("before=2000-01-01T00:00:00Z") == set()


def test_videos_and_pictures_apart(site):
    content = site.get("/api/videos?q=film3").json["items"][0]["content"]
    picture = site.get(f"/api/thumb/{content}?t=0.5").body
    job = site.post("/api/uploads?name=still.jpg", picture).json["job"]
    assert site.ended(job)["state"] == "done"

    def names(query):
        return sorted(hit["name"] for hit in site.get(f"/api/search?text=red&{query}").json["hits"])

    films = [f"film{n}.mp4" for n in range(4)]
    assert names("kind=image") == ["still.jpg"]
    assert names("kind=video") == films
    assert names("kind=audio") == []
    assert names("kind=") == names("") == [*films, "still.jpg"]
    assert site.get("/api/search?text=red&kind=image").json["total_estimate"] == 1
    body = {"text": "red", "kind": "image", "has_speech": False}
    assert [hit["name"] for hit in site.post("/api/search", body).json["hits"]] == ["still.jpg"]
    assert {hit["kind"] for hit in site.get(f"/api/search?like={content}&kind=image").json["hits"]} == {
        "image"
    }
    assert {hit["kind"] for hit in site.get("/api/search?text=red&then=blue&kind=video").json["hits"]} == {
        "video"
    }
    assert site.get("/api/search?text=red&kind=book").json["error"]["field"] == "kind"


def test_experts_to_choose_from(site):
    found = site.get("/api/status").json["experts"]
    assert found == ["colour", "speech"]
    for expert in found:
        assert site.get(f"/api/search?text=red&expert={expert}").json["hits"], expert


def test_folders_to_choose_from(site, ready):
    found = site.get("/api/status").json["folders"]
    assert sorted(found) == [str(ready[1] / "part0"), str(ready[1] / "part1")]
    for folder in found:
        assert len(site.get(f"/api/search?text=red&folder={quote(folder)}").json["hits"]) == 2


def test_by_video_and_by_moment(site, library):
    videos = site.get("/api/videos").json["items"]
    content = videos[0]["content"]
    expected = opened(library).search(like=videos[0]["path"])
    for answer in (
        site.get(f"/api/search?like={content}"),
        site.post("/api/search", {"like": content}),
    ):
        assert [hit["content"] for hit in answer.json["hits"]] == [match.content for match in expected]
    long = next(v for v in videos if v["duration"] > 40)
    found = site.get(f"/api/search?like={long['content']}&second=32").json["hits"]
    assert all(hit["like"]["start"] <= 32 < hit["like"]["end"] for hit in found)
    assert site.get(f"/api/search?like={'0' * 64}").code == "not_found"


@pytest.mark.parametrize("query", ["kind=painting", "limit=0", "colour=red", "min_duration=5&max_duration=2"])
def test_look_alikes_that_cannot_be_asked_for(site, query):
    content = site.get("/api/videos").json["items"][0]["content"]
    assert site.get(f"/api/search?like={content}&{query}").status == 422


def test_by_picture(site):
    content = site.get("/api/videos").json["items"][0]["content"]
    picture = site.get(f"/api/thumb/{content}?t=0.5").body
    answer = site.post("/api/uploads?purpose=query&name=a.jpg", picture, {"Content-Type": "image/jpeg"})
    assert answer.status == 202
    assert answer.json["job"] is None
    assert answer.json["upload"]["kind"] == "image"
    found = site.get(f"/api/search?image={answer.json['upload']['id']}").json["hits"]
    assert len(found) == 4
    assert found[0]["score"] > 0.9
    assert site.get(f"/api/search?image={'0' * 64}").code == "no_upload"
    assert site.get("/api/videos").json["total"] == 4


def test_the_weights_of_a_hit_are_those_of_the_experts_that_its_video_has(site):
    searcher = site.service.live.now.searcher
    (query,) = searcher.model.encode(["red"])
    hits = site.get("/api/search?text=red").json["hits"]
    kinds = set()
    for hit in hits:
        rows = searcher.snapshot.rows(hit["content"])
        has = [any(searcher.snapshot.gallery.available[row, m] for row in rows) for m in range(2)]
        parts = [float(weight) * there for weight, there in zip(query.weights, has, strict=True)]
        expected = [part / sum(parts) for part in parts]
        assert list(hit["weights"].values()) == pytest.approx(expected, abs=5e-5)
        kinds.add(tuple(has))
    assert len(kinds) > 1


def test_the_strip_of_heat_is_made_of_clip_scores(site):
    searcher = site.service.live.now.searcher
    content = next(v["content"] for v in site.get("/api/videos").json["items"] if v["duration"] > 40)
    found = site.get(f"/api/videos/{content}/match?text=red").json
    scores = next(searcher.item_scores(["red"], [PLAIN]))[0]
    low, high = np.median(scores), scores.max()
    for number, value in enumerate(found["scores"]):
        second = min((number + 0.5) * found["step"], found["duration"] - 1e-6)
        row = next(
            r for r in searcher.snapshot.rows(content)
            for item in [searcher.snapshot.items[r]]
            if not item.whole and item.start <= second < item.end + 1e-6
        )  # fmt: skip
        assert value == pytest.approx(np.clip((scores[row] - low) / (high - low), 0, 1), abs=1e-3)
    assert len(found["scores"]) == int(np.ceil(found["duration"] / found["step"]))
    best = [moment["score"] for moment in found["moments"]]
    assert best == sorted(best, reverse=True)


def test_captions_are_ranked(site, library):
    video = site.get("/api/videos").json["items"][0]
    texts = ["red", "green", "blue", "red and blue"]
    expected = opened(library).caption(video["path"], texts)
    found = site.post(f"/api/videos/{video['content']}/captions", {"captions": texts}).json["captions"]
    assert [one["text"] for one in found] == [one.text for one in expected]
    assert site.get(f"/api/videos/{video['content']}/captions").json == {"captions": []}


def test_what_is_known_of_a_video(site):
    listed = site.get("/api/videos?q=FILM3").json
    assert listed["total"] == 1
    one = listed["items"][0]
    found = site.get(f"/api/videos/{one['content']}").json
    assert found["name"] == "film3.mp4"
    assert {e["name"] for e in found["experts"]} == {"colour", "speech"}
    assert found["words"][0]["text"].startswith("dogs")
    assert sum(not clip["whole"] for clip in found["clips"]) == 5
    assert site.get("/api/videos?offset=3").json["items"] != []
    assert site.get("/api/videos?offset=4").json["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("text=", "text"),
        ("text=red&image=" + "0" * 64, "text"),
        ("text=red&limit=0", "limit"),
        ("text=red&limit=201", "limit"),
        ("text=red&offset=-1", "offset"),
        ("text=red&min_duration=nan", "min_duration"),
        ("text=red&max_duration=inf", "max_duration"),
        ("text=red&after=0001-01-01T00:00:00%2B23:59", "after"),
        ("text=red&folder=relative", "folder"),
        ("text=red&folder=/a%00b", "folder"),
        ("text=red&colour=red", "colour"),
        ("text=red&norm=nonsense", None),
        ("text=red&norm=sdm", None),
        ("text=red&bank=nobody", None),
        ("text=red&min_duration=5&max_duration=2", None),
        ("text=red&min_confidence=0.5", None),
        ("text=red&beta=-1", "beta"),
        ("text=" + "x" * 10_001, "text"),
        ("like=../../etc/passwd", "like"),
    ],
)
def test_what_cannot_be_asked(site, query, field):
    answer = site.get(f"/api/search?{query}")
    assert answer.status == 422
    assert answer.json["error"]["field"] == field


def test_strange_words_are_answered(site):
    for text in ("日本語", "\x00", "'; DROP TABLE files; --", '"" OR *', "a" * 10_000, "\u202e"):
        assert site.post("/api/search", {"text": text}).status == 200
    lone = site.post("/api/search", b'{"text": "\\ud800"}', {"Content-Type": "application/json"})
    assert lone.status in (200, 422)


def test_one_shape_of_errors(site):
    assert site.get("/nowhere").code == "not_found"
    assert site.get("/api/nowhere").code == "not_found"
    assert site.ask("PATCH", "/api/search", {}).code in ("method_not_allowed", "invalid")
    assert site.ask("DELETE", "/api/status").code == "method_not_allowed"
    assert site.post("/api/search", b"{", {"Content-Type": "application/json"}).code == "invalid"
    deep = b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert site.post("/api/search", deep, {"Content-Type": "application/json"}).status in (400, 422)


def test_the_schema_describes_every_route(site):
    schema = json.loads(site.get("/api/openapi.json").body)
    assert {"/api/search", "/api/jobs/{number}/events", "/media/{content}", "/metrics"} <= set(
        schema["paths"]
    )
    for path, methods in schema["paths"].items():
        for method in methods.values():
            assert method.get("description") or method.get("summary"), path


def test_the_same_picture_comes_first(library, ready, tmp_path):
    """A picture that is in the library, uploaded as the query, is its own best hit and marked as such."""
    content = opened(library).store.files()[0].content
    with running(library, roots=(tmp_path,)) as site:
        picture = site.get(f"/api/thumb/{content}?t=1").body
        still = tmp_path / "still.jpg"
        still.write_bytes(picture)
        assert site.ended(site.post("/api/folders", {"path": str(still)}).json["job"])["state"] == "done"
        upload = site.post("/api/uploads?purpose=query", picture).json["upload"]
        hits = site.get(f"/api/search?image={upload['id']}").json["hits"]
        assert hits[0]["content"] == upload["id"] == hashlib.sha256(picture).hexdigest()
        assert hits[0]["name"] == "still.jpg"
        assert [hit["identical"] for hit in hits] == [True] + [False] * (len(hits) - 1)
        assert [hit["rank"] for hit in hits] == list(range(1, len(hits) + 1))
        later = site.get(f"/api/search?image={upload['id']}&offset=1").json["hits"]
        assert [hit["content"] for hit in later] == [hit["content"] for hit in hits[1:]]
        alike = site.get(f"/api/search?like={upload['id']}").json["hits"]
        assert upload["id"] not in [hit["content"] for hit in alike]
        assert not any(hit["identical"] for hit in alike)


def test_the_head_of_every_address(site):
    """HEAD answers as GET does, without the body."""
    content = site.get("/api/videos").json["items"][0]["content"]
    for path in (
        "/api/search",
        "/nowhere",
        "/api/nowhere",
        "/",
        "/healthz",
        f"/media/{content}",
        "/api/jobs",
    ):
        got, head = site.get(path), site.ask("HEAD", path)
        assert (head.status, head.body) == (got.status, b""), path
        assert head.headers["content-type"] == got.headers["content-type"], path
        assert head.headers["content-length"] == got.headers["content-length"], path
    assert site.ask("HEAD", "/api/status").status == 200
    assert site.ask("HEAD", "/api/search?text=red").headers["content-type"] == "application/json"
