"""What is sent to PostgreSQL."""

from __future__ import annotations

import struct

import numpy as np

from wordreel.index.postgresql import copy_stream, multirange, select
from wordreel.index.vector_server import SLOTS


def test_an_exact_search_orders_all_rows_of_a_pattern():
    statement = select("t", 5, 20, graph=False)
    assert "WHERE pattern = 5 AND clip <@ %(ranges)s::int8multirange" in statement
    assert "halfvec" not in statement
    assert "+ 0.0" in statement.partition("ORDER BY")[2]


def test_an_approximate_search_takes_candidates_and_orders_them_by_full_vectors():
    inner, outer = select("t", 5, 20, graph=True).split(") near")
    assert "ORDER BY embedding::halfvec(20) <#> %(query)s::vector::halfvec(20) LIMIT %(near)s" in inner
    assert "WHERE pattern = 5" in inner
    assert outer.startswith(" ORDER BY (embedding <#> %(query)s::vector) + 0.0, clip LIMIT %(k)s")


def test_ranges():
    assert multirange(np.array([[1, 3], [5, 5]])) == "{[1,3],[5,5]}"
    assert multirange(np.zeros((0, 2), np.int64)) == "{}"


def test_rows_are_in_the_binary_format_of_copy():
    biases = np.array([[0.5, np.nan, 0, 0]], np.float32)
    vectors = np.array([[1, 2, 3]], np.float32)
    stream = copy_stream(np.array([9]), 5, np.array([-7]), biases, vectors)
    assert stream.startswith(b"PGCOPY\n\xff\r\n\0" + bytes(8))
    assert stream.endswith(struct.pack(">h", -1))
    row, at, fields = stream[19:-2], 2, []
    assert struct.unpack_from(">h", row) == (5,)
    while at < len(row):
        (size,) = struct.unpack_from(">i", row, at)
        fields.append(row[at + 4 : at + 4 + size])
        at += 4 + size
    assert [struct.unpack(">q", fields[0]), struct.unpack(">i", fields[1])] == [(9,), (5,)]
    assert struct.unpack(">q", fields[2]) == (-7,)
    assert struct.unpack_from(">5i", fields[3]) == (1, 0, 700, SLOTS, 1)
    assert struct.unpack_from(">if", fields[3], 20) == (4, 0.5)
    assert struct.unpack(">hh3f", fields[4]) == (3, 0, 1, 2, 3)
