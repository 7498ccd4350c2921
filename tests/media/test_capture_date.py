"""The date chosen for files as phones, cameras, recorders and messengers leave them, and why."""

import os
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import av
import numpy as np
import pytest
from PIL import Image

from wordreel.media.capture_date import CaptureDate, capture_date, recorded_date
from wordreel.media.container import DecodeTask
from wordreel.media.formats import open_media
from wordreel.media.types import Limits

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = timezone(timedelta(hours=2))  # the zone of the machine
MODIFIED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()
BY_FILE_TIME = "2024-05-06T09:08:09+02:00"
APPLE = "com.apple.quicktime.creationdate"
UTC_TIME = {"creation_time": "2019-07-14T13:30:12.000000Z"}
ORIGINAL, ZONE, CHANGED = 0x9003, 0x9011, 0x0132  # EXIF tags

CASES = [
    # (what it is, name, metadata, date, source, why)
    ("iPhone", "IMG_0001.mov", {APPLE: "2019-07-14T22:30:12+0900", **UTC_TIME},
     "2019-07-14T22:30:12+09:00", "metadata", "the local time of the recording is known"),
    ("Android video", "clip.mp4", UTC_TIME,
     "2019-07-14T15:30:12+02:00", "metadata", "UTC alone is read in the zone of the machine"),
    ("Android video abroad", "VID_20190714_223010.mp4", UTC_TIME,
     "2019-07-14T22:30:10", "file name", "the name fits the UTC time, and has the local one"),
    ("renamed by another date", "20180101_101112.mp4", UTC_TIME,
     "2019-07-14T15:30:12+02:00", "metadata", "the name is not within 14 hours of the metadata"),
    ("Pixel", "PXL_20210704_223012345.mp4", {},
     "2021-07-05T00:30:12+02:00", "file name", "these names are in UTC"),
    ("Pixel with metadata", "PXL_20190714_133010123.mp4", UTC_TIME,
     "2019-07-14T15:30:12+02:00", "metadata", "its name does not say the local time"),
    ("Matroska DATE_UTC", "clip.mkv", UTC_TIME,
     "2019-07-14T15:30:12+02:00", "metadata", "the container has the instant"),
    ("WhatsApp video", "VID-20190714-WA0003.mp4", {},
     "2019-07-14", "file name", "only the day is in the name"),
    ("WhatsApp on a computer", "WhatsApp Video 2019-07-14 at 3.30.12 PM.mp4", {},
     "2019-07-14T15:30:12", "file name", "half a day of twelve hours"),
    ("camera with the clock of 1904", "MVI_0001.mov", {"creation_time": "1904-01-01T00:00:05Z"},
     BY_FILE_TIME, "file time", "never set"),
    ("camera with the clock of 1970", "IMG_20190714_153012.mp4", {"creation_time": "1970-01-01T00:02:00Z"},
     "2019-07-14T15:30:12", "file name", "never set, and the name knows better"),
    ("camera with a clock ahead", "MVI_0002.mp4", {"creation_time": "2031-01-01T10:00:00Z"},
     BY_FILE_TIME, "file time", "a date in the future"),
    ("wrong in one place only", "IMG_0002.mov", {APPLE: "1970-01-01T00:00:00+0000", **UTC_TIME},
     "2019-07-14T15:30:12+02:00", "metadata", "the next place is plausible"),
    ("cut with an editor", "cut.mp4", {}, BY_FILE_TIME, "file time", "no metadata"),
    ("a year alone", "film.mp4", {"date": "2019"}, BY_FILE_TIME, "file time", "when it was released"),
    ("camera photograph", "DSC_0001.jpg", {ORIGINAL: "2019:07:14 15:30:12"},
     "2019-07-14T15:30:12", "metadata", "EXIF is local time; its zone is not known"),
    ("phone photograph", "IMG_0003.jpg", {ORIGINAL: "2019:07:14 22:30:12", ZONE: "+09:00"},
     "2019-07-14T22:30:12+09:00", "metadata", "EXIF with its zone"),
    ("edited photograph", "DSC_0002.jpg", {CHANGED: "2022:02:02 02:02:02", ORIGINAL: "2019:07:14 15:30:12"},
     "2019-07-14T15:30:12", "metadata", "taken before it was changed"),
    ("photograph with a damaged zone", "DSC_0003.jpg", {ORIGINAL: "2019:07:14 15:30:12", ZONE: "  :  "},
     "2019-07-14T15:30:12", "metadata", "the time still holds"),
    ("photograph without a set clock", "DSC_0004.jpg", {ORIGINAL: "0000:00:00 00:00:00"},
     BY_FILE_TIME, "file time", "zeros are no date"),
    ("picture for the web", "photo.webp", {ORIGINAL: "2019:07:14 15:30:12"},
     "2019-07-14T15:30:12", "metadata", "EXIF is in WebP too"),
    ("Android screenshot", "Screenshot_2021-03-04-10-11-12.png", {},
     "2021-03-04T10:11:12", "file name", "screenshots have no metadata"),
    ("picture sent by WhatsApp", "IMG-20190714-WA0012.jpg", {},
     "2019-07-14", "file name", "EXIF is removed when it is sent"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_date_chosen(case, tmp_path):
    _, name, metadata, date, source, why = case
    path = tmp_path / name
    if path.suffix in (".mp4", ".mov", ".mkv"):
        _film(path, metadata)
    else:
        _picture(path, metadata)
    assert _chosen(path) == CaptureDate(date, source), why


def _film(path, metadata):
    options = {"movflags": "use_metadata_tags"} if APPLE in metadata else {}
    with av.open(str(path), "w", options=options) as container:
        container.metadata.update(metadata)
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
        frame.time_base, frame.pts = Fraction(1, 5), 0
        container.mux(stream.encode(frame.reformat(format="yuv420p")))
        container.mux(stream.encode(None))


def _picture(path, tags):
    exif = Image.Exif()
    for tag, text in tags.items():
        (exif if tag == CHANGED else exif.get_ifd(0x8769))[tag] = text
    Image.new("RGB", (32, 32)).save(path, **({"exif": exif} if tags else {}))


def _chosen(path):
    os.utime(path, (MODIFIED, MODIFIED))
    file = open_media(path, Limits())
    try:
        opened = DecodeTask(file.descriptor, file.size, file.container, Limits()).open()
        frame = next(opened.decode(video=0))
        recorded = recorded_date(opened.metadata, frame.metadata, NOW)
    finally:
        file.close()
    return capture_date(recorded, str(path), path.stat().st_mtime, HERE, NOW)


NAMES = {
    "2019-07-14 15.30.12.jpg": "2019-07-14T15:30:12",
    "IMG_20190714_153012.jpg": "2019-07-14T15:30:12",
    "IMG_20190714_153012 (1).jpg": "2019-07-14T15:30:12",
    "20190714_153012.jpg": "2019-07-14T15:30:12",
    "DJI_20210704183012_0001.mp4": "2021-07-04T18:30:12",
    "WP_20140704_15_30_12_Pro.mp4": "2014-07-04T15:30:12",
    "video_2019-07-14_15-30-12.mp4": "2019-07-14T15:30:12",
    "Screen Recording 2023-01-02 at 10.11.12.mov": "2023-01-02T10:11:12",
    "Screen Shot 2021-03-04 at 9.11.12\u202fPM.png": "2021-03-04T21:11:12",
    "Screen Shot 2021-03-04 at 12.11.12 AM.png": "2021-03-04T00:11:12",
    "Bildschirmfoto 2021-03-04 um 10.11.12.png": "2021-03-04T10:11:12",
    "WP_20140704_001.mp4": "2014-07-04",
    "20190714.mp4": "2019-07-14",
    "20190714_996199.mp4": "2019-07-14",  # no such time
    "1080p 19201080.mp4": "",
    "20191399.mp4": "",  # no such month
    "19040101_000000.mp4": "",
    "20310101_101112.mp4": "",
    "120190714.mp4": "",  # part of a longer number
    "2019071415.mp4": "",
    "holiday.mp4": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_date_in_a_name(name):
    chosen = capture_date("", f"/media/2001-02-03/{name}", MODIFIED, HERE, NOW)
    expected = (
        CaptureDate(NAMES[name], "file name") if NAMES[name] else CaptureDate(BY_FILE_TIME, "file time")
    )
    assert chosen == expected


def test_order_as_text_is_that_of_local_time():
    dates = ["2019-07-14", "2019-07-14T08:00:00+09:00", "2019-07-14T09:00:00", "2019-07-15"]
    assert sorted(dates) == dates


def test_metadata_of_strangers_never_raises():
    for text in (
        "9999-12-31T23:59:59-12:00",
        "0001-01-01T00:00:00+14:00",
        "x" * 100_000,
        "2019-07-14T15:30:1\x00",
    ):
        assert recorded_date({"creation_time": text}, {"DateTime": text}, NOW) == ""


def test_metadata_is_read_by_the_decoder(tmp_path, fence):
    _film(tmp_path / "film.mp4", UTC_TIME)
    _picture(tmp_path / "photo.jpg", {ORIGINAL: "2019:07:14 15:30:12", ZONE: "+09:00"})
    _picture(tmp_path / "other.jpg", {CHANGED: b"2019:07:14 15:30:12\xff\xfe"})
    assert fence.probe(tmp_path / "film.mp4").recorded == "2019-07-14T13:30:12Z"
    assert fence.probe(tmp_path / "photo.jpg").recorded == "2019-07-14T15:30:12+09:00"
    assert fence.probe(tmp_path / "other.jpg").recorded == ""  # not text, and still a picture
