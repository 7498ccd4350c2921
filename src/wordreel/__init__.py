"""Find the moment in your videos with words.

    import wordreel

    with wordreel.Library("holiday.lib") as library:
        library.add("~/Videos")
        for hit in library.search("a man lifts a car", limit=3):
            print(hit.path, hit.start, hit.score, hit.why)

Importing this package is cheap: decoders and networks load when they are first used.

>>> Query("somebody opens a door", then="a cat runs out", limit=3).limit
3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.banks.check import BankCheck
    from wordreel.banks.manager import BankManager
    from wordreel.catalogue.annotation_manager import AnnotationManager
    from wordreel.catalogue.annotations import Annotation, TagCount
    from wordreel.catalogue.banks import Bank
    from wordreel.catalogue.people import Person, PersonFace
    from wordreel.catalogue.records import Video
    from wordreel.embed.use import ModelRow, UseResult
    from wordreel.errors import (
        BankError,
        BrokenMedia,
        DatasetError,
        DiskError,
        EvaluationError,
        FingerprintMismatch,
        HubnessError,
        IndexServerError,
        LibraryBusy,
        LibraryError,
        LibraryReadOnly,
        MediaError,
        NextStep,
        NotMedia,
        OverLimit,
        QueryError,
        TrainingError,
        UnsafePickle,
        WeightsCorrupt,
        WeightsError,
        WeightsMissing,
        WordreelError,
    )
    from wordreel.ingest.add_report import AddProgress, AddReport
    from wordreel.library import Library
    from wordreel.maintain.publication import PublicationReport
    from wordreel.media.clip_file import cut_clip
    from wordreel.media.cut_report import CutReport
    from wordreel.models.base import Model
    from wordreel.models.conversion import ConversionOptions
    from wordreel.people.people_manager import PeopleManager
    from wordreel.progress import Progress
    from wordreel.search.filters import Filters
    from wordreel.search.hits import (
        CaptionMatch,
        Hit,
        Match,
        MatchTimeline,
        Reason,
        Results,
        SequenceHit,
    )
    from wordreel.search.query import Query, VideoMoment
    from wordreel.search.saved import SavedSearch, SavedSearches
    from wordreel.search.searcher import Searcher
    from wordreel.search.server_index import IndexStatus
    from wordreel.search.video_query import VideoQuery
    from wordreel.types import QueryEmbedding

__version__ = "0.2.0"

_MODULES = {
    "library": ("Library",),
    "banks.check": ("BankCheck",),
    "banks.manager": ("BankManager",),
    "errors": (
        "BankError",
        "BrokenMedia",
        "DatasetError",
        "DiskError",
        "EvaluationError",
        "FingerprintMismatch",
        "HubnessError",
        "IndexServerError",
        "LibraryBusy",
        "LibraryError",
        "LibraryReadOnly",
        "MediaError",
        "NextStep",
        "NotMedia",
        "OverLimit",
        "QueryError",
        "TrainingError",
        "UnsafePickle",
        "WeightsCorrupt",
        "WeightsError",
        "WeightsMissing",
        "WordreelError",
    ),
    "ingest.add_report": ("AddProgress", "AddReport"),
    "catalogue.annotation_manager": ("AnnotationManager",),
    "catalogue.annotations": ("Annotation", "TagCount"),
    "catalogue.banks": ("Bank",),
    "catalogue.people": ("Person", "PersonFace"),
    "people.people_manager": ("PeopleManager",),
    "maintain.publication": ("PublicationReport",),
    "catalogue.records": ("Video",),
    "media.clip_file": ("cut_clip",),
    "media.cut_report": ("CutReport",),
    "models.base": ("Model",),
    "models.conversion": ("ConversionOptions",),
    "progress": ("Progress",),
    "search.filters": ("Filters",),
    "search.hits": ("CaptionMatch", "Hit", "Match", "MatchTimeline", "Reason", "Results", "SequenceHit"),
    "search.query": ("Query", "VideoMoment"),
    "search.saved": ("SavedSearch", "SavedSearches"),
    "search.searcher": ("Searcher",),
    "search.server_index": ("IndexStatus",),
    "embed.use": ("ModelRow", "UseResult"),
    "search.video_query": ("VideoQuery",),
    "types": ("QueryEmbedding",),
}
__getattr__ = lazy_exports(__name__, _MODULES)

__all__ = [
    "AddProgress",
    "AddReport",
    "Annotation",
    "AnnotationManager",
    "Bank",
    "BankCheck",
    "BankError",
    "BankManager",
    "BrokenMedia",
    "CaptionMatch",
    "ConversionOptions",
    "CutReport",
    "DatasetError",
    "DiskError",
    "EvaluationError",
    "Filters",
    "FingerprintMismatch",
    "Hit",
    "HubnessError",
    "IndexServerError",
    "IndexStatus",
    "Library",
    "LibraryBusy",
    "LibraryError",
    "LibraryReadOnly",
    "Match",
    "MatchTimeline",
    "MediaError",
    "Model",
    "ModelRow",
    "NextStep",
    "NotMedia",
    "OverLimit",
    "PeopleManager",
    "Person",
    "PersonFace",
    "Progress",
    "PublicationReport",
    "Query",
    "QueryEmbedding",
    "QueryError",
    "Reason",
    "Results",
    "SavedSearch",
    "SavedSearches",
    "Searcher",
    "SequenceHit",
    "TagCount",
    "TrainingError",
    "UnsafePickle",
    "UseResult",
    "Video",
    "VideoMoment",
    "VideoQuery",
    "WeightsCorrupt",
    "WeightsError",
    "WeightsMissing",
    "WordreelError",
    "__version__",
    "cut_clip",
]


def __dir__() -> list[str]:
    return sorted(__all__)
