"""One hash over all that matters in a library: two libraries of the same files have the same."""

from __future__ import annotations

import hashlib

from wordreel.library.catalogue import Catalogue

# Ids, clocks, inodes and file times are left out: they tell when and where, not what.
_QUERIES = (
    "SELECT path, content, size FROM files ORDER BY path",
    """SELECT content, size, kind, container, duration, width, height, rotation, frame_rate, video_codec,
              audio_codec, sample_rate FROM contents ORDER BY content""",
    "SELECT content, expert, fingerprint, state, hash, reason, rows, dim FROM tracks ORDER BY 1, 2",
    "SELECT content, start, end, whole, shot FROM clips ORDER BY content, whole DESC, start, end",
    "SELECT content, expert, start, end, text, score FROM words ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT content, dataset, split, text, start, end FROM captions ORDER BY content, dataset, split, id",
    "SELECT path, size, reason FROM failures ORDER BY path",
)


def digest(catalogue: Catalogue) -> str:
    """sha256 over the rows of every table, in a fixed order and without what changes from run to run."""
    total = hashlib.sha256()
    with catalogue.transaction(reading=True):  # one moment of all tables
        for query in _QUERIES:
            total.update(query.encode())
            for row in catalogue.rows(query):
                total.update(repr(row).encode("utf-8", "surrogatepass"))
    return total.hexdigest()
