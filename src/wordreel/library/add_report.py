"""Progress of an `add`, and the report of what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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

    @property
    def times_real_time(self) -> float:
        """Seconds of media per second of work."""
        return self.media_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def files_per_minute(self) -> float:
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
    """What one `add` did. Every file is in exactly one of the lists or counts."""

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
    seconds: float = 0.0
    media_seconds: float = 0.0
