"""Hits as other programs take them: paths, dictionaries and tables."""

import json
from pathlib import Path

import pytest

from wordreel.search.hits import Match, Reason, Results, SequenceHit

PLAIN = (1, 0.5, Path("/films/a.mp4"), 0.0, 2.0, "video", 9.0, "c0", (Reason("seen", 0.5, "dog", None),))


def test_dictionaries_are_plain_values():
    results = Results((SequenceHit(*PLAIN, then=(3.0, 4.0)), Match(*PLAIN, like=(1.0, 2.0))))
    rows = json.loads(json.dumps(results.to_dicts()))
    assert [row["path"] for row in rows] == ["/films/a.mp4"] * 2
    assert rows[0]["why"] == [{"expert": "seen", "share": 0.5, "what": "dog", "at": None}]
    assert (rows[0]["then"], rows[1]["like"]) == ([3.0, 4.0], [1.0, 2.0])


def test_a_table_has_a_row_for_each_hit():
    pandas = pytest.importorskip("pandas")
    table = Results((SequenceHit(*PLAIN),)).to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert table.path.tolist() == ["/films/a.mp4"]
