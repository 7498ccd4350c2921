"""A digest of what a library holds."""

import hashlib

from wordreel.catalogue.store import LibraryStore

# Ids, clocks, inodes and file times are left out: they say when and where, not what.
QUERIES = (
    "SELECT path, content, size FROM files ORDER BY path",
    """SELECT content, size, kind, container, duration, width, height, rotation, frame_rate, video_codec,
              audio_codec, sample_rate FROM contents ORDER BY content""",
    "SELECT content, expert, fingerprint, state, hash, reason, rows, dim FROM tracks ORDER BY 1, 2",
    "SELECT content, start, end, whole, shot FROM clips ORDER BY content, whole DESC, start, end",
    "SELECT content, expert, start, end, text, score FROM words ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT content, dataset, split, text, start, end FROM captions ORDER BY content, dataset, split, id",
    "SELECT path, size, reason FROM failures ORDER BY path",
    "SELECT content FROM quick_contents ORDER BY content",
    "SELECT content, start, end, kind, text FROM annotations ORDER BY content, kind, key, start, end",
    "SELECT name, query FROM saved_searches ORDER BY name",
    "SELECT name, edited FROM people ORDER BY key, id",
    "SELECT content, start, end, rows FROM person_faces ORDER BY content, start, end, id",
)


def digest_of(store: LibraryStore) -> str:
    """Return a hash over all tables but ids, clocks and inodes: equal for libraries of the same files."""
    total = hashlib.sha256()
    with store.catalogue.transaction(reading=True):  # a snapshot of all tables
        for query in QUERIES:
            total.update(query.encode())
            for row in store.catalogue.rows(query):
                total.update(repr(row).encode("utf-8", "surrogatepass"))
    return total.hexdigest()
