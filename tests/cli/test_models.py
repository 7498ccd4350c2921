"""`wordreel models`: everything usable, with its size, its paper and the commands that lead to it."""

import json

from typer.testing import CliRunner

from wordreel.cli.app import app
from wordreel.lab.models.registry import MODELS, VIDEO_TEXT_MODELS, parameters


def listings():
    result = CliRunner().invoke(app, ["models", "--json"])
    assert result.exit_code == 0, result.output
    return {(row["kind"], row["name"]): row for row in json.loads(result.stdout)}


def test_every_model_says_how_to_get_it():
    rows = listings()
    assert {name for kind, name in rows if kind == "built-in"} == {"joint"}
    assert rows["built-in", "joint"]["get"] == ["wordreel use joint"]
    assert {name for kind, name in rows if kind == "model"} == set(MODELS) | set(VIDEO_TEXT_MODELS)
    for name in MODELS:
        row = rows["model", name]
        assert row["parameters"] == parameters()["models"][name]
    released = {
        name for (_, name), row in rows.items() if row["get"][0].startswith("wordreel use CHECKPOINT")
    }
    pairwise = {"clip4clip-tight", "ts2net", "ts2net-long"}
    assert released == {"ce", "ce-plus", "moee", "mmt", "mmt-long", *VIDEO_TEXT_MODELS} - pairwise
    assert rows["model", "ts2net"]["get"][0] == "wordreel convert CHECKPOINT.bin --out FOLDER"
    assert rows["model", "clip4clip-mean"]["parameters"] == 151_277_313
    assert rows["model", "clip4clip-mean"]["experts"] == ["clip-vit-b-32"]
    assert rows["recipe", "ce-msrvtt-full"]["get"] == ["wordreel train features ce-msrvtt-full"]
    assert all(row["paper"] for (kind, _), row in rows.items() if kind == "model")


def test_the_list_is_for_people_too():
    text = CliRunner().invoke(app, ["models"]).stdout
    assert "183,448,607  Collaborative Experts (arXiv 1907.13487)" in text
    assert "wordreel use CHECKPOINT.pth --text" in text
