import random

import pytest
from tests.media import make

from wordreel.errors import BrokenMedia, MediaError, NotMedia
from wordreel.media.formats import HEAD, sniff

NAMES = {
    ".mp4": "mp4",
    ".mov": "mp4",
    ".m4a": "mp4",
    ".mkv": "matroska",
    ".webm": "matroska",
    ".avi": "avi",
    ".mpg": "mpeg-ps",
    ".ts": "mpeg-ts",
    ".flv": "flv",
    ".gif": "gif",
    ".wav": "wav",
    ".mp3": "mp3",
    ".flac": "flac",
    ".ogg": "ogg",
    ".aac": "aac",
    ".aiff": "aiff",
    ".png": "png",
    ".jpg": "jpeg",
    ".webp": "webp",
    ".bmp": "bmp",
    ".tiff": "tiff",
}


@pytest.mark.parametrize(
    ("suffix", "writer"),
    [
        *((suffix, make.video) for suffix in make.CODECS),
        *((suffix, make.sound) for suffix in make.SOUND_CODECS),
        *((suffix, make.still) for suffix in make.PICTURE_CODECS),
    ],
)
def test_containers_are_told_by_content(tmp_path, suffix, writer):
    data = writer(tmp_path / f"a{suffix}").read_bytes()
    assert sniff(data[:HEAD]).name == NAMES[suffix]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"#EXTM3U\n", "HLS"),
        (b"\xef\xbb\xbf  #extm3u\n", "HLS"),
        (b"ffconcat version 1.0", "concat"),
        (b"# ffconcat", "concat"),
        (b"file 'a.mp4'", "concat"),
        (b"<?xml version='1.0'?><!-- x --><MPD type='static'>", "DASH"),
        (b"v=0\r\no=- 1 1 IN IP4 0.0.0.0", "SDP"),
        (b"PK\x03\x04xxxx", "zip"),
        (b"<svg >", "SVG"),
        (b"<html>", "web page"),
        (b"hello, world", "text"),
        (b"\x00" * 100, "zero bytes"),
        (b"\x00\x00\x00\x1cftypheic", "HEIF"),
        (b"RIFF\x00\x00\x00\x00ACON", "not a video"),
    ],
)
def test_strangers_are_named(head, words):
    with pytest.raises(NotMedia, match=words):
        sniff(head)


def test_nothing_is_broken():
    with pytest.raises(BrokenMedia, match="empty"):
        sniff(b"")


def test_noise_is_not_taken_for_sound():
    """Sync words are short and noise holds them now and then: a second one must follow in its place."""
    noise = random.Random(0)
    taken = 0
    for first in range(2000):
        head = bytes([0xFF, 0xE0 | first % 32]) + noise.randbytes(HEAD - 2)
        try:
            sniff(head)
            taken += 1
        except MediaError:
            pass
    assert taken <= 2
