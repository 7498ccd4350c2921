"""When a file was recorded: from its metadata, else its name, else its file time.

Each of them errs in its own way: a clock that was never set says 1904, 1970 or 1980, and most containers
know the instant in UTC but not where the camera was. Dates are ISO 8601 text in the local time of the
recording, so their order as text is that of the clock on the wall: `2019-07-14T15:30:12+02:00`, without the
offset where it is not known, and `2019-07-14` where only the day is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import PurePath
from typing import Literal

CaptureSource = Literal["metadata", "file name", "file time"]

FIRST_YEAR = 1990  # anything earlier comes from a clock that was never set
AHEAD = timedelta(days=1)  # of this machine's clock, for other time zones
FARTHEST_ZONE = timedelta(hours=14)  # of a local time from UTC

EXIF_TIMES = {  # as the decoder names them, and their time zones
    "ExifIFD/DateTimeOriginal": "ExifIFD/0x9011",
    "ExifIFD/DateTimeDigitized": "ExifIFD/0x9012",
    "DateTime": "ExifIFD/0x9010",
}
CONTAINER_TIMES = ("com.apple.quicktime.creationdate", "date", "creation_time")  # the last is in UTC
IN_NAME = re.compile(
    r"(?<!\d)(?P<year>\d{4})(?P<dash>[-_. ]?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:\D{0,5}?(?P<hour>\d\d|\d(?=[-_.:]))(?P<colon>[-_.:]?)(?P<minute>\d\d)(?P=colon)(?P<second>\d\d)"
    r"(?:\d{3})?(?!\d)(?:\s?(?P<half>[ap])\.?m)?)?(?!\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CaptureDate:
    """When a file was recorded, as ISO 8601 text in local time, and where that was read."""

    date: str
    source: CaptureSource


def recorded_date(container: Mapping[str, str], frame: Mapping[str, str], now: datetime | None = None) -> str:
    """Return the first plausible date in the metadata of a file as ISO 8601 text, "" without one.

    Text that ends in "Z" is in UTC because the local time is not known.

    Args:
        container: The metadata of the container and its streams.
        frame: The metadata of the first frame, which has the EXIF of a picture.
        now: Later dates are refused; the machine's clock if None.
    """
    for text in _metadata_times(container, frame):
        date = _parsed(text)
        if date is not None and _is_plausible(date, now):
            return f"{date.replace(tzinfo=None).isoformat()}Z" if text.endswith("Z") else date.isoformat()
    return ""


def capture_date(
    recorded: str, path: str, modified: float, zone: tzinfo | None = None, now: datetime | None = None
) -> CaptureDate:
    """Return when a file was recorded.

    A name whose time fits metadata in UTC gives the local time that the metadata lacks. Where nothing does,
    it is local time on this machine.

    Args:
        recorded: What `recorded_date` returned.
        path: The path of the file, of which the name counts.
        modified: The file time, in seconds since 1970.
        zone: The time zone of this machine if None.
        now: Later dates are refused; the machine's clock if None.

    >>> capture_date("", "VID-20190714-WA0003.mp4", 0.0)
    CaptureDate(date='2019-07-14', source='file name')
    """
    named = _named_date(PurePath(path).name, zone, now)
    date = _parsed(recorded)
    if date is not None and _is_plausible(date, now):
        if not recorded.endswith("Z"):
            return CaptureDate(date.isoformat(), "metadata")
        local = _parsed(named)
        if local is None or local.tzinfo or abs(local - date.replace(tzinfo=None)) > FARTHEST_ZONE:
            return CaptureDate(date.astimezone(zone).isoformat(), "metadata")
    if named:
        return CaptureDate(named, "file name")
    return CaptureDate(datetime.fromtimestamp(int(modified), UTC).astimezone(zone).isoformat(), "file time")


def _metadata_times(container: Mapping[str, str], frame: Mapping[str, str]) -> Iterator[str]:
    for key, zone_key in EXIF_TIMES.items():
        text = frame.get(key, "").strip()
        yield text + frame.get(zone_key, "").strip()
        yield text
    for key in CONTAINER_TIMES:
        yield container.get(key, "").strip()


def _parsed(text: str) -> datetime | None:
    """Return a day with a time, in ISO 8601 or as EXIF writes it; None for anything else."""
    if len(text) < len("2019-07-14T15:30:12"):
        return None
    try:
        date = datetime.fromisoformat(re.sub(r"^(\d{4}):(\d\d):(\d\d)", r"\1-\2-\3", text))
    except ValueError:
        return None
    return date.replace(microsecond=0)


def _is_plausible(date: datetime, now: datetime | None) -> bool:
    if not FIRST_YEAR <= date.year < datetime.max.year:
        return False
    return date.replace(tzinfo=date.tzinfo or UTC) <= (now or datetime.now(UTC)) + AHEAD


def _named_date(name: str, zone: tzinfo | None, now: datetime | None) -> str:
    """Return the first plausible date in a file name, "" without one."""
    for match in IN_NAME.finditer(name):
        try:
            day = datetime(int(match["year"]), int(match["month"]), int(match["day"]))
        except ValueError:
            continue
        if not _is_plausible(day, now):
            continue
        date = day.date().isoformat()
        if match["hour"] is None:
            return date
        hour = int(match["hour"])
        if match["half"]:
            hour = hour % 12 + (12 if match["half"] in "pP" else 0)
        try:
            time = day.replace(hour=hour, minute=int(match["minute"]), second=int(match["second"]))
        except ValueError:
            return date  # the other digits are no time
        if name.startswith("PXL_"):  # phones of this kind name files by UTC
            time = time.replace(tzinfo=UTC).astimezone(zone)
        return time.isoformat()
    return ""
