"""People over HTTP, and pictures of their faces."""

import cv2
import numpy as np
import pytest
from tests.face_tracks import LOOKS, put_faces
from tests.serve.conftest import MARK, running

from wordreel.experts.face_detection import DetectedFaces
from wordreel.people.face_groups import centred
from wordreel.serve.thumbnails import FaceCrops, around, cut_face


class TwoFaces:
    """Finds the same two faces in every frame: the second is Anna's."""

    def detect(self, image):
        boxes = np.array([[4.0, 4.0, 12.0, 12.0], [30.0, 10.0, 50.0, 30.0]])
        points = np.repeat(boxes[:, None, :2], 5, axis=1) + np.arange(10).reshape(5, 2)
        return DetectedFaces(boxes, points, np.array([0.9, 0.9]))

    def embed(self, faces):
        return np.stack([LOOKS[8], LOOKS[0]])[: len(faces)]


@pytest.fixture
def grouped(library):
    """A server whose people are turned on: Anna in two films, Bob in one."""
    with running(library) as site:
        films = [one["path"] for one in site.get("/api/videos").json["items"]]
        long = [path for path in films if "film2" in path or "film3" in path]
        put_faces(site.service.store, long[0], (0, 0, 0), (1, 0, 10))
        put_faces(site.service.store, long[1], (0, 1, 4))
        site.service.face_crops._load = TwoFaces
        assert site.get("/api/people").json == {"on": False, "people": []}
        assert site.ask("PUT", "/api/people", {"on": True}).json["on"]
        yield site


def test_people_are_listed_named_and_found(grouped):
    (anna, bob) = grouped.get("/api/people?least=1").json["people"]
    assert (anna["faces"], anna["videos"], bob["faces"]) == (2, 2, 1)
    assert grouped.ask("PUT", f"/api/people/{anna['id']}", {"name": "Anna"}).status == 200
    hits = grouped.get("/api/search?text=anna+red&moments=true&limit=50").json["hits"]
    faces = grouped.get(f"/api/people/{anna['id']}/faces").json["faces"]
    assert {hit["content"] for hit in hits} == {face["content"] for face in faces}
    assert {(hit["why"][0]["expert"], hit["why"][0]["what"]) for hit in hits} == {("person", "Anna")}
    assert grouped.get("/api/search?text=red&people=Anna&moments=true&limit=50").json["hits"] == hits
    assert grouped.get("/api/search?text=red&people=Zoe").status == 409
    assert grouped.ask("PUT", f"/api/people/{bob['id']}", {"name": "anna"}).status == 409
    assert grouped.ask("PUT", f"/api/people/{bob['id']}", {"name": "x" * 101}).code == "invalid"


def test_merge_split_and_forget(grouped):
    (anna, bob) = grouped.get("/api/people?least=1").json["people"]
    assert grouped.post(f"/api/people/{anna['id']}/merge", {"others": [bob["id"]]}).status == 200
    faces = grouped.get(f"/api/people/{anna['id']}/faces").json["faces"]
    assert len(faces) == 3
    new = grouped.post(f"/api/people/{anna['id']}/split", {"faces": [faces[0]["id"]]}).json["id"]
    assert len(grouped.get(f"/api/people/{new}/faces").json["faces"]) == 1
    assert grouped.post(f"/api/people/{anna['id']}/split", {"faces": [1]}).status in (200, 409)
    assert grouped.ask("DELETE", f"/api/people/{new}").status == 200
    assert grouped.get(f"/api/people/{new}/faces").status == 409
    assert grouped.ask("DELETE", "/api/people").status == 200
    assert grouped.get("/api/people?least=1").json == {"on": False, "people": []}


def test_a_picture_of_a_face(grouped):
    anna = grouped.get("/api/people").json["people"][0]
    answer = grouped.get(anna["picture"])
    assert (answer.status, answer.headers["content-type"]) == (200, "image/jpeg")
    assert answer.headers["cache-control"] == "private, no-store"
    image = cv2.imdecode(np.frombuffer(answer.body, np.uint8), cv2.IMREAD_COLOR)
    assert image.shape[0] <= 34  # the second face, with its margin, not the frame
    assert grouped.get("/api/faces/99999").status == 409
    cached = [path for path in (grouped.service.store.cache).rglob("*") if path.is_file()]
    assert all(path.read_bytes() != answer.body for path in cached)  # not on the disk
    grouped.ask("DELETE", "/api/people")
    assert grouped.get(anna["picture"]).status == 409


def test_the_face_that_is_meant_is_cut_out():
    frame = np.zeros((48, 64, 3), np.uint8)
    frame[10:30, 30:50] = 200
    assert (
        cut_face(frame, TwoFaces(), centred(LOOKS[0])).mean()
        > cut_face(frame, TwoFaces(), centred(LOOKS[8])).mean()
    )
    assert around(frame, np.array([60.0, 40.0, 80.0, 60.0])).shape[:2] == (15, 11)

    class Nobody(TwoFaces):
        def detect(self, image):
            return DetectedFaces(np.zeros((0, 4)), np.zeros((0, 5, 2)), np.zeros(0))

    assert cut_face(frame, Nobody(), centred(LOOKS[0])) is frame
    assert FaceCrops(None, Nobody).forget() is None


def test_a_read_only_server_groups_nobody(library):
    with running(library, read_only=True) as site:
        for method, path, body in (
            ("PUT", "/api/people", {"on": True}),
            ("DELETE", "/api/people", None),
            ("PUT", "/api/people/1", {"name": "x"}),
            ("POST", "/api/people/1/merge", {"others": [2]}),
            ("POST", "/api/people/1/split", {"faces": [2]}),
        ):
            assert site.ask(method, path, body, headers=MARK).code == "read_only"
