"""One query, one answer: the command line, Python and HTTP return the same hits, to the digit."""

import json
from urllib.parse import urlencode

import cv2
import numpy as np
import pytest
from tests.cli.invoke import shell
from tests.media_files import video

from wordreel import Library
from wordreel.banks.sources import everyday_queries
from wordreel.cli.find.hit_lines import lines
from wordreel.cli.setup.weights import required_weights
from wordreel.runtime.store import WeightStore

pytest.importorskip("fastapi")
from tests.serve.conftest import serving

from wordreel.serve.options import Options
from wordreel.serve.service import Service

pytestmark = pytest.mark.skipif(
    not all(WeightStore().has(name) for name in required_weights()), reason="run `wordreel weights fetch`"
)

QUERIES = 200
SPECIAL = (  # the words, whether there are hits, what is said of the words
    ("grand opening", True, ""),
    ('red "grand opening"', True, ""),
    ('"grand closing"', False, ""),
    ("-red a picture", True, ""),
    ("a picture without a sign", True, ""),
    ("zzzzqqqq blorp", True, "does not know"),
    ("un coche rojo", True, ""),
    ("mies ja koira", True, "looks like Finnish"),
    ("🐶", True, "no words"),
    ("a dog that does not bark", True, "excludes nothing"),
    ("tag:none a dog", False, ""),
)
LIMIT = 5


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of eight films and a sign under the model that ships."""
    root = tmp_path_factory.mktemp("one_answer")
    for number in range(8):
        video(root / "films" / f"{number}.mp4", seconds=3.0 + number % 3, seed=number)
    sign = np.full((240, 640, 3), 60, np.uint8)
    cv2.putText(sign, "GRAND OPENING", (40, 130), cv2.FONT_HERSHEY_SIMPLEX, 1.8, (255, 255, 255), 4)
    cv2.imwrite(str(root / "films" / "sign.png"), sign)
    with Library(root / "library") as added:
        assert len(added.add(root / "films").added) == 9
    return root / "library"


@pytest.fixture(scope="module")
def surfaces(library):
    """The same library in Python and behind a server."""
    with (
        Library(library) as python,
        Library(library) as served,
        serving(Service(served, Options(port=0))) as site,
    ):
        yield python, site


def numbers(hits):
    """What a person sees of hits, and the numbers behind it."""
    return [
        (hit["path"], hit["start"], hit["end"], hit["score"], hit["confidence"], hit["norm"]) for hit in hits
    ]


def answer(library, surfaces, text, **fields):
    """The hits that Python returns, after a comparison with those of HTTP and the command line."""
    python, site = surfaces
    parameters = {"text": text, "limit": LIMIT, **fields}
    hits = python.search(text, limit=LIMIT, **fields)
    by_http = site.get(f"/api/search?{urlencode(parameters).replace('True', 'true')}").json
    options = ["--library", library, "--limit", LIMIT]
    for name, value in fields.items():
        options += [f"--{name}"] if value is True else [f"--{name}", value]
    by_command = json.loads(shell("search", *options, "--json", "--", text).stdout)
    assert numbers(by_http["hits"]) == numbers(hits.to_dicts()) == numbers(by_command), text
    assert by_http["notices"] == list(hits.notices), text
    return hits


def test_200_queries_have_one_answer_on_every_surface(library, surfaces):
    asked = everyday_queries()[:: len(everyday_queries()) // QUERIES][:QUERIES]
    assert len(asked) == QUERIES
    for number, text in enumerate(asked):
        fields = {"moments": True} if number % 2 else {}
        hits = answer(library, surfaces, text, **fields)
        assert hits, text
        if number % 20 == 0:
            options = ["--library", library, "--limit", LIMIT, *(["--moments"] if fields else [])]
            printed = shell("search", text, *options, "--all").stdout.splitlines()
            assert [line for line in printed if not line.startswith("      ")] == lines(hits)


@pytest.mark.parametrize("fields", [{}, {"moments": True}, {"then": "a blue picture"}])
@pytest.mark.parametrize(("text", "any_hits", "notice"), SPECIAL)
def test_special_words_have_one_answer_on_every_surface(library, surfaces, text, any_hits, notice, fields):
    hits = answer(library, surfaces, text, **fields)
    if "then" not in fields:
        assert bool(hits) is any_hits
    assert notice in " ".join(hits.notices)
