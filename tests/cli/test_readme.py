"""README.md shows what the commands print: samples, table and pictures are made by tools/readme.py."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from tests.order import LINE
from tools.history import RESULTS, Measured
from tools.readme import (
    FIGURES,
    MOST_BYTES,
    PICTURES,
    README,
    SHOWN_FOLDER,
    run_sample,
    samples_of,
    table,
    with_samples,
)
from tools.terminal_svg import Command, animated, wrapped

from wordreel.demo.collection import QUERIES

TEXT = README.read_text("utf-8")
SAMPLES = samples_of(TEXT)


def test_the_table_is_made_of_the_results():
    known = json.loads(FIGURES.read_text("utf-8"))
    history = "default_model" in Measured.read(RESULTS).history
    assert f"<!-- figures -->\n{table(known, history)}<!-- end -->" in TEXT
    assert "with an earlier model" in table(known, history=True)
    assert table(known).count("\n") == 8
    changed = {**known, "rows": [{**row, "mean": {**row["mean"], "r1": 99.9}} for row in known["rows"]]}
    assert table(changed) != table(known)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.typed)
def test_a_sample_stands_below_its_command(sample):
    before = TEXT[: TEXT.index(f"<!-- sample: {sample.typed} -->")]
    assert before.rstrip().endswith(f"{sample.typed}\n```")
    assert sample.printed.strip()
    assert "/work" not in sample.printed


def test_the_searches_find_what_the_demo_expects():
    right = {query.text: query for query in QUERIES}
    shown = {name: one.printed for one in SAMPLES for name in right if f'"{name}"' in one.typed}
    assert len(shown) == 2
    search = next(printed for printed in shown.values() if LINE.match(printed.splitlines()[0]))
    assert f"{SHOWN_FOLDER}/sign.mp4" in search.splitlines()[0]
    where = shown["a rocket on the launch pad"]
    assert where.splitlines()[1].endswith("%  0:05.0 – 0:10.0")


def test_samples_are_the_output_of_their_command(built, shell):
    folder = built[0] / "media"
    page = (
        "Text.\n\n```\nwordreel list\n```\n\n<!-- sample: wordreel list --failures -->\n```text\nold\n```\n"
        f"<!-- end -->\n<!-- sample: wordreel show {SHOWN_FOLDER}/station.mp4 -->\n```text\n```\n"
        "<!-- end -->\n"
    )
    made, samples = with_samples(page, shell.library, folder)
    assert samples == samples_of(made)
    assert samples[0].printed == shell("list", "--failures").replace(str(folder), SHOWN_FOLDER)
    assert samples[1].printed.startswith(f"{SHOWN_FOLDER}/station.mp4: video")
    assert with_samples(made, shell.library, folder)[0] == made
    with pytest.raises(SystemExit, match="runs wordreel"):
        run_sample("rm -r everything", shell.library, folder)


def test_pictures_are_small_and_shown():
    tutorial = (README.parent / "docs" / "tutorials" / "folder.md").read_text("utf-8")
    for name, shown in (
        ("page.webp", "](docs/pictures/page.webp)" in TEXT),
        ("terminal.svg", "](../pictures/terminal.svg)" in tutorial),
    ):
        assert 1_000 < (PICTURES / name).stat().st_size <= MOST_BYTES
        assert shown


def test_the_recording_is_of_the_samples():
    assert (PICTURES / "terminal.svg").read_text("utf-8") == animated(SAMPLES)


def test_a_recording_holds_every_command_and_line():
    first = Command("wordreel search <b>", "  1.  0.5  a.mp4\n      because\n")
    commands = [first, Command("wordreel list", "x" * 200)]
    tree = ElementTree.fromstring(animated(commands))  # noqa: S314 - our own
    space = "{http://www.w3.org/2000/svg}"
    lines = ["".join(text.itertext()) for text in tree.iter(f"{space}text")]
    expected = ["$ wordreel search <b>", "  1.  0.5  a.mp4", "      because", "$ wordreel list"]
    assert lines == [*expected, *wrapped("x" * 200)]
    style = tree.find(f"{space}style").text
    shown = [float(one) for one in re.findall(r"([\d.]+)%\{visibility:visible\}", style)]
    assert shown == sorted(shown)
    assert shown[0] == 0.0
