"""Tags, notes and saved searches over HTTP."""

import pytest
from tests.serve.conftest import MARK, running


@pytest.fixture
def film(site):
    return site.get("/api/videos?q=film3").json["items"][0]["content"]


def test_tags_and_notes(site, film):
    address = f"/api/videos/{film}/annotations"
    made = site.post(address, {"kind": "tag", "text": "beach", "start": 3, "end": 5})
    assert made.status == 201
    note = site.post(address, {"kind": "note", "text": "a zeppelin"}).json
    assert [one["text"] for one in site.get(address).json["annotations"]] == ["a zeppelin", "beach"]
    assert site.get("/api/tags").json == {"tags": [{"tag": "beach", "moments": 1, "videos": 1}]}
    assert site.get("/api/annotations?tag=BEACH").json["annotations"] == [made.json]
    hits = site.get("/api/search?text=red+tag:beach").json["hits"]
    assert [(hit["content"], hit["why"][0]["expert"]) for hit in hits] == [(film, "tag")]
    assert site.get("/api/search?text=red&tags=beach").json["hits"] == hits
    assert site.get("/api/search?text=zeppelin").json["hits"][0]["why"][0]["expert"] == "note words"
    changed = site.ask("PUT", f"/api/annotations/{note['id']}", {"text": "an airship"})
    assert (changed.status, changed.json["text"]) == (200, "an airship")
    assert site.ask("DELETE", f"/api/annotations/{note['id']}").status == 200
    assert len(site.get(address).json["annotations"]) == 1
    assert site.ask("DELETE", f"/api/annotations/{note['id']}").status == 409


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "tag", "text": " "}, "bad_query"),
        ({"kind": "tag", "text": "a\u202eb"}, "bad_query"),
        ({"kind": "tag", "text": "x" * 101}, "bad_query"),
        ({"kind": "note", "text": "x" * 10_001}, "invalid"),
        ({"kind": "tag", "text": "x", "start": 5, "end": 3}, "bad_query"),
        ({"kind": "tag", "text": "x", "start": 500}, "bad_query"),
        ({"kind": "star", "text": "x"}, "invalid"),
    ],
)
def test_what_cannot_be_tagged(site, film, body, code):
    assert site.post(f"/api/videos/{film}/annotations", body).code == code


def test_tags_of_no_video(site):
    assert site.post(f"/api/videos/{'0' * 64}/annotations", {"kind": "tag", "text": "x"}).status == 404
    assert site.get(f"/api/videos/{'0' * 64}/annotations").status == 404


def test_saved_searches(site, film):
    query = {"text": "red tag:beach", "min_duration": 10.0, "limit": 5}
    saved = site.ask("PUT", "/api/saved/long%20ones", query)
    assert (saved.status, saved.json["name"]) == (200, "long ones")
    assert saved.json["query"] == {"text": "red tag:beach", "min_duration": 10.0}
    assert site.post("/api/search", saved.json["query"]).status == 200
    like = site.ask("PUT", "/api/saved/alike", {"like": film, "second": 2.0}).json
    assert site.post("/api/search", like["query"]).status == 200
    assert [one["name"] for one in site.get("/api/saved").json["saved"]] == ["alike", "long ones"]
    assert site.ask("PUT", "/api/saved/x", {"image": film}).code == "bad_query"
    assert site.ask("PUT", "/api/saved/x", {"text": "a", "tagz": []}).code == "invalid"
    assert site.ask("DELETE", "/api/saved/alike").status == 200
    assert site.ask("DELETE", "/api/saved/alike").status == 404


def test_a_read_only_server_changes_nothing(library):
    with running(library, read_only=True) as site:
        film = site.get("/api/videos").json["items"][0]["content"]
        for method, path, body in (
            ("POST", f"/api/videos/{film}/annotations", {"kind": "tag", "text": "x"}),
            ("PUT", "/api/annotations/1", {"text": "x"}),
            ("DELETE", "/api/annotations/1", None),
            ("PUT", "/api/saved/x", {"text": "a"}),
            ("DELETE", "/api/saved/x", None),
        ):
            assert site.ask(method, path, body, headers=MARK).code == "read_only"
        assert site.get("/api/tags").json == {"tags": []}
