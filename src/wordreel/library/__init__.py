"""The library on disk: files, tracks, clips, words, captions, query banks and embeddings."""

from typing import TYPE_CHECKING

from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.library.add_report import AddProgress, AddReport
    from wordreel.library.embeddings import EmbeddingCache, Gallery
    from wordreel.library.ingest import add
    from wordreel.library.integrity import verify
    from wordreel.library.library_problem import LibraryProblem
    from wordreel.library.records import Failure, Stats, StoredClip, StoredFile, TrackRow, Video, WordRow
    from wordreel.library.repair_library import repair
    from wordreel.library.store import LibraryStore

__getattr__ = lazy_exports(
    __name__,
    {
        "add_report": ("AddProgress", "AddReport"),
        "embeddings": ("EmbeddingCache", "Gallery"),
        "ingest": ("add",),
        "integrity": ("verify",),
        "library_problem": ("LibraryProblem",),
        "records": ("Failure", "Stats", "StoredClip", "StoredFile", "TrackRow", "Video", "WordRow"),
        "repair_library": ("repair",),
        "store": ("LibraryStore",),
    },
)

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
