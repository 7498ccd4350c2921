"""One query, one answer: the command line, Python and HTTP return the same hits, to the digit."""

from urllib.parse import urlencode

import pytest
from tests.cli.invoke import shell, shell_json
from tests.media_files import video

from wordreel import Library
from wordreel.banks.everyday import queries
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
LIMIT = 5


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of eight films under the model that ships."""
    root = tmp_path_factory.mktemp("one_answer")
    for number in range(8):
        video(root / "films" / f"{number}.mp4", seconds=3.0 + number % 3, seed=number)
    with Library(root / "library") as added:
        assert len(added.add(root / "films").added) == 8
    return root / "library"


def answer(hits):
    """What a person sees of hits, and the numbers behind it."""
    return [
        (hit["path"], hit["start"], hit["end"], hit["score"], hit["confidence"], hit["norm"]) for hit in hits
    ]


def test_200_queries_have_one_answer_on_every_surface(library):
    asked = queries()[:: len(queries()) // QUERIES][:QUERIES]
    assert len(asked) == QUERIES
    with (
        Library(library) as python,
        Library(library) as served,
        serving(Service(served, Options(port=0))) as site,
    ):
        for number, text in enumerate(asked):
            moments = bool(number % 2)
            parameters = {"text": text, "limit": LIMIT, "moments": str(moments).lower()}
            by_http = answer(site.get(f"/api/search?{urlencode(parameters)}").json["hits"])
            hits = python.search(text, limit=LIMIT, moments=moments)
            by_python = answer(hits.to_dicts())
            options = ["--library", library, "--limit", LIMIT, *(["--moments"] if moments else [])]
            by_command = answer(shell_json("search", text, *options))
            assert by_python, text
            assert by_http == by_python == by_command, text
            if number % 20 == 0:
                printed = shell("search", text, *options, "--all").stdout.splitlines()
                assert [line for line in printed if not line.startswith("      ")] == lines(hits)
