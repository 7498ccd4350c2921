"""Sharp thumbnails, pictures of questions, and addresses that lead nowhere."""

import numpy as np
from tests.media_files import video


def test_thumbnails_come_in_the_sizes_of_screens(site, library, tmp_path, ready):
    content = site.get("/api/videos").json["items"][0]["content"]
    import cv2

    def short_side(query):
        body = site.get(f"/api/thumb/{content}?t=1{query}").body
        return min(cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR).shape[:2])

    small, sharp = short_side(""), short_side("&size=360")
    assert small <= 180 < 361 > sharp >= small
    assert site.get(f"/api/thumb/{content}?size=9999").code == "invalid"


def test_the_picture_of_a_question_is_shown(site, tmp_path):
    film = video(tmp_path / "asked.mp4", 1.0, 5)
    sent = site.post("/api/uploads?purpose=query&name=asked.mp4", film.read_bytes()).json["upload"]
    answer = site.get(f"/api/uploads/{sent['id']}/thumb")
    assert answer.headers["content-type"] == "image/jpeg"
    assert site.get(f"/api/uploads/{'0' * 64}/thumb").code == "no_upload"


def test_unknown_addresses_show_the_page_to_browsers_alone(site):
    page = site.get("/films/2024", Accept="text/html,*/*")
    assert (page.status, page.headers["content-type"].split(";")[0]) == (404, "text/html")
    assert page.body == site.get("/", Accept="text/html").body
    assert site.get("/films/2024", Accept="*/*").code == "not_found"
    assert site.get("/api/films", Accept="text/html").code == "not_found"


def test_examples_need_sample_queries(site):
    assert site.get("/api/examples").json == {"examples": []}
