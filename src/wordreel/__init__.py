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

from wordreel.errors import (
    BankError as BankError,
)
from wordreel.errors import (
    BrokenMedia as BrokenMedia,
)
from wordreel.errors import (
    DatasetError as DatasetError,
)
from wordreel.errors import (
    DiskError as DiskError,
)
from wordreel.errors import (
    EvaluationError as EvaluationError,
)
from wordreel.errors import (
    FingerprintMismatch as FingerprintMismatch,
)
from wordreel.errors import (
    HubnessError as HubnessError,
)
from wordreel.errors import (
    IndexServerError as IndexServerError,
)
from wordreel.errors import (
    LibraryBusy as LibraryBusy,
)
from wordreel.errors import (
    LibraryError as LibraryError,
)
from wordreel.errors import (
    LibraryReadOnly as LibraryReadOnly,
)
from wordreel.errors import (
    MediaError as MediaError,
)
from wordreel.errors import (
    NextStep as NextStep,
)
from wordreel.errors import (
    NotMedia as NotMedia,
)
from wordreel.errors import (
    OverLimit as OverLimit,
)
from wordreel.errors import (
    QueryError as QueryError,
)
from wordreel.errors import (
    TrainingError as TrainingError,
)
from wordreel.errors import (
    UnsafePickle as UnsafePickle,
)
from wordreel.errors import (
    WeightsCorrupt as WeightsCorrupt,
)
from wordreel.errors import (
    WeightsError as WeightsError,
)
from wordreel.errors import (
    WeightsMissing as WeightsMissing,
)
from wordreel.errors import (
    WordreelError as WordreelError,
)
from wordreel.progress import Progress as Progress
from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.banks.check import BankCheck as BankCheck
    from wordreel.banks.manager import BankManager as BankManager
    from wordreel.catalogue.annotations import Annotation as Annotation
    from wordreel.catalogue.annotations import AnnotationManager as AnnotationManager
    from wordreel.catalogue.annotations import TagCount as TagCount
    from wordreel.catalogue.banks import Bank as Bank
    from wordreel.catalogue.records import Video as Video
    from wordreel.embed.switch_model import ModelRow as ModelRow
    from wordreel.embed.switch_model import UseResult as UseResult
    from wordreel.ingest.add_report import AddProgress as AddProgress
    from wordreel.ingest.add_report import AddReport as AddReport
    from wordreel.ingest.watch import WatchEvent as WatchEvent
    from wordreel.library import Library as Library
    from wordreel.maintain.publication import PublicationReport as PublicationReport
    from wordreel.media.clip_file import cut_clip as cut_clip
    from wordreel.media.types import CutReport as CutReport
    from wordreel.models.base import Model as Model
    from wordreel.models.laboratory import ConversionOptions as ConversionOptions
    from wordreel.people.people_manager import PeopleManager as PeopleManager
    from wordreel.people.people_manager import Person as Person
    from wordreel.people.people_manager import PersonFace as PersonFace
    from wordreel.search.filters import Filters as Filters
    from wordreel.search.hits import CaptionMatch as CaptionMatch
    from wordreel.search.hits import Hit as Hit
    from wordreel.search.hits import Match as Match
    from wordreel.search.hits import MatchTimeline as MatchTimeline
    from wordreel.search.hits import Reason as Reason
    from wordreel.search.hits import Results as Results
    from wordreel.search.hits import SequenceHit as SequenceHit
    from wordreel.search.query import Query as Query
    from wordreel.search.query import VideoMoment as VideoMoment
    from wordreel.search.saved import SavedSearch as SavedSearch
    from wordreel.search.saved import SavedSearches as SavedSearches
    from wordreel.search.searcher import Searcher as Searcher
    from wordreel.search.server_index import IndexStatus as IndexStatus
    from wordreel.search.video_query import VideoQuery as VideoQuery
    from wordreel.types import QueryEmbedding as QueryEmbedding

__version__ = "0.2.0"

_MODULES = {
    "banks.check": ("BankCheck",),
    "banks.manager": ("BankManager",),
    "catalogue.annotations": ("Annotation", "AnnotationManager", "TagCount"),
    "catalogue.banks": ("Bank",),
    "catalogue.records": ("Video",),
    "embed.switch_model": ("ModelRow", "UseResult"),
    "ingest.add_report": ("AddProgress", "AddReport"),
    "ingest.watch": ("WatchEvent",),
    "library": ("Library",),
    "maintain.publication": ("PublicationReport",),
    "media.clip_file": ("cut_clip",),
    "media.types": ("CutReport",),
    "models.base": ("Model",),
    "models.laboratory": ("ConversionOptions",),
    "people.people_manager": ("PeopleManager", "Person", "PersonFace"),
    "search.filters": ("Filters",),
    "search.hits": ("CaptionMatch", "Hit", "Match", "MatchTimeline", "Reason", "Results", "SequenceHit"),
    "search.query": ("Query", "VideoMoment"),
    "search.saved": ("SavedSearch", "SavedSearches"),
    "search.searcher": ("Searcher",),
    "search.server_index": ("IndexStatus",),
    "search.video_query": ("VideoQuery",),
    "types": ("QueryEmbedding",),
}
__getattr__ = lazy_exports(__name__, _MODULES)
_IMPORTED = [name for name in dir() if name[0].isupper() and name != "TYPE_CHECKING"]
__all__ = sorted([*_IMPORTED, *(name for names in _MODULES.values() for name in names), "__version__"])


def __dir__() -> list[str]:
    return __all__
