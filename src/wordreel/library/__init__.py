"""The library on disk: files, tracks, clips, words, captions, query banks and embeddings."""

from wordreel.library.add_report import AddProgress, AddReport
from wordreel.library.embeddings import EmbeddingCache, Gallery
from wordreel.library.ingest import add
from wordreel.library.records import Failure, Stats, StoredClip, StoredFile, TrackRow, Video, WordRow
from wordreel.library.store import LibraryStore
from wordreel.library.verify import LibraryProblem, repair, verify

__all__ = [
    "AddProgress",
    "AddReport",
    "EmbeddingCache",
    "Failure",
    "Gallery",
    "LibraryProblem",
    "LibraryStore",
    "Stats",
    "StoredClip",
    "StoredFile",
    "TrackRow",
    "Video",
    "WordRow",
    "add",
    "repair",
    "verify",
]
