"""How far an `add` has come, and what it did in the end."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """A snapshot; bytes and seconds count the part of unfinished files that has been decoded."""

    files_done: int
    files_total: int
    bytes_done: float
    bytes_total: int
    media_seconds: float
    seconds: float
    failures: int
    current: tuple[str, ...]  # the files being worked on

    @property
    def times_real_time(self) -> float:
        """Seconds of media per second of work."""
        return self.media_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def files_per_minute(self) -> float:
        return 60.0 * self.files_done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """By bytes, the one size known of files not opened yet; None until there is something to go by.

        >>> Progress(1, 4, 25.0, 100, 60.0, 30.0, 0, ()).seconds_left
        90.0
        """
        if self.bytes_done <= 0:
            return None
        return self.seconds * max(0.0, self.bytes_total - self.bytes_done) / self.bytes_done


@dataclass
class AddReport:
    """What one `add` did. Each file that was looked at is in exactly one of the lists or counts."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # the path held something else before
    updated: list[str] = field(
        default_factory=list
    )  # known content, experts that were missing or stale were run
    moved: list[tuple[str, str]] = field(default_factory=list)  # (old path, new path)
    duplicates: list[str] = field(default_factory=list)  # known content that still exists elsewhere too
    skipped: int = 0  # unchanged
    ignored: int = 0  # not media, and not expected to be
    failed: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)
    still_failed: list[tuple[str, str]] = field(
        default_factory=list
    )  # failed before, unchanged, not tried again
    gone: list[str] = field(default_factory=list)  # in the library, no longer on the disk; kept
    seconds: float = 0.0
    media_seconds: float = 0.0
