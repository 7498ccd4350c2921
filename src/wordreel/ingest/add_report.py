"""Progress of an `add`, and the report of what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wordreel.catalogue.passes import Pass
from wordreel.progress import Progress


@dataclass(frozen=True, kw_only=True)
class AddProgress(Progress):
    """Progress of an `add`: `done` of `total` files; bytes and seconds include what is decoded of open files.

    >>> sizes = {"bytes_done": 25.0, "bytes_total": 100}
    >>> now = AddProgress("adding files", 1, 4, media_seconds=60.0, seconds=30.0, **sizes)
    >>> now.seconds_left, now.times_real_time
    (90.0, 2.0)
    """

    bytes_done: float
    bytes_total: int
    media_seconds: float
    seconds: float
    failures: int = 0
    current: tuple[str, ...] = ()  # files being processed
    analysis: Pass = "thorough"

    @property
    def times_real_time(self) -> float:
        """Seconds of media per second of work."""
        return self.media_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def files_per_minute(self) -> float:
        """Return the rate so far."""
        return 60.0 * self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated from bytes, the only size known of unopened files; None until the first byte is done."""
        if self.bytes_done <= 0:
            return None
        return self.seconds * max(0.0, self.bytes_total - self.bytes_done) / self.bytes_done


AddProgressCallback = Callable[[AddProgress], None]


@dataclass
class AddReport:
    """What one `add` did. Every file is in exactly one of the lists or counts up to `gone`.

    `degenerate` are results that were stored and cannot be right: (path, expert, what is wrong); the path is
    empty where it concerns the embeddings of the library.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # the path had other content before
    updated: list[str] = field(default_factory=list)  # known content; missing or stale experts were run
    moved: list[tuple[str, str]] = field(default_factory=list)  # (old path, new path)
    duplicates: list[str] = field(default_factory=list)  # known content that still exists elsewhere too
    skipped: int = 0  # unchanged
    ignored: int = 0  # not media, and not expected to be
    failed: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)
    still_failed: list[tuple[str, str]] = field(default_factory=list)  # failed before, unchanged, not retried
    gone: list[str] = field(default_factory=list)  # in the library, no longer on disk; not removed
    degenerate: list[tuple[str, str, str]] = field(default_factory=list)
    seconds: float = 0.0
    media_seconds: float = 0.0
    quick: QuickReport | None = None  # of the quick pass, if there was one
    waiting: int = 0  # contents of the library that have had the quick pass only


@dataclass(frozen=True)
class QuickReport:
    """What the quick pass of an `add` did; its files are counted in the lists of the `AddReport`."""

    files: int
    seconds: float
    media_seconds: float

    @classmethod
    def of(cls, report: AddReport) -> QuickReport:
        """Summarise the report of a quick pass."""
        files = len(report.added) + len(report.changed)
        return cls(files, report.seconds, report.media_seconds)


def merge_passes(quick: AddReport, thorough: AddReport) -> AddReport:
    """Merge the reports of a quick pass and the thorough one that followed it, over the same paths.

    A file is what the quick pass found it to be; where that failed, what the thorough one made of it.
    """
    moved = [new for _, new in quick.moved]
    known = {*quick.added, *quick.changed, *moved, *quick.duplicates}
    lost = {path for path, _ in thorough.failed}  # added by its key frames, and can still be found
    again = known & {*thorough.updated, *thorough.changed, *thorough.added, *thorough.duplicates, *lost}
    return AddReport(
        added=[*(p for p in quick.added if p not in lost), *(p for p in thorough.added if p not in known)],
        changed=[
            *(p for p in quick.changed if p not in lost),
            *(p for p in thorough.changed if p not in known),
        ],
        updated=[p for p in thorough.updated if p not in known],
        moved=[*(pair for pair in quick.moved if pair[1] not in lost), *thorough.moved],
        duplicates=[
            *(p for p in quick.duplicates if p not in lost),
            *(p for p in thorough.duplicates if p not in known),
        ],
        skipped=thorough.skipped - len(known - again),
        ignored=thorough.ignored,
        failed=thorough.failed,
        still_failed=thorough.still_failed,
        gone=thorough.gone,
        degenerate=thorough.degenerate,
        seconds=quick.seconds + thorough.seconds,
        media_seconds=thorough.media_seconds,
        quick=QuickReport.of(quick),
    )
