"""The library on disk: which files there are, what the experts made of them, and where it is kept."""

from wordreel.library.embeddings import EmbeddingCache, Gallery
from wordreel.library.ingest import add
from wordreel.library.progress import AddReport, Progress
from wordreel.library.records import Failure, Stats, StoredClip, StoredFile, TrackRow, Video, WordRow
from wordreel.library.repair import repair
from wordreel.library.store import LibraryStore
from wordreel.library.verify import Problem, verify

__all__ = [
    "AddReport",
    "EmbeddingCache",
    "Failure",
    "Gallery",
    "LibraryStore",
    "Problem",
    "Progress",
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
