"""DiDeMo: personal videos of up to half a minute, 3 to 5 described moments each."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from wordreel.datasets.build import Captions, add, as_list, assemble, field, name
from wordreel.datasets.files import Wanted, find, known_split, look, missing, read_list
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

PLACES = ("didemo_data",)
SEGMENT = 5  # seconds: moments are given in segments of a video
CAPTIONS = {
    split: Wanted(f"DiDeMo's {split} descriptions", (f"{split}_data.json",), "the other splits can be read")
    for split in ("train", "val", "test")
}
LISTS = {
    split: Wanted(
        f"the list of DiDeMo's {split} videos",
        (f"{split}_list.txt",),
        "every described video is taken; the papers use a few videos less for training",
    )
    for split in ("train", "val", "test")
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split: each description with its moment, the mean of what the annotators marked.

    An id is the file's name up to its first dot.
    """
    known_split("didemo", split, SPLITS)
    path = find(folder, CAPTIONS[split], PLACES)
    captions: Captions = {}
    files: dict[str, str] = {}
    for number, entry in enumerate(as_list(read_json(path), path, "the descriptions"), 1):
        where = f"{path}, entry {number}"
        file = name(entry, "video", where)
        video = file.partition(".")[0]
        files.setdefault(video, file)
        add(captions, video, field(entry, "description", where), where, *_moment(entry.get("times"), where))
    listed = look(folder, LISTS[split], PLACES)
    if listed is None:
        return assemble("didemo", split, captions, captions, path, files, [missing(folder, LISTS[split])])
    order = [file.partition(".")[0] for file in read_list(listed)]
    return assemble("didemo", split, order, captions, path, files)


def _moment(times: object, where: str) -> tuple[float | None, float | None]:
    if not times:
        return None, None
    pairs = as_list(times, where, "'times'")
    try:
        first = fmean(float(start) for start, _ in pairs)
        last = fmean(float(end) for _, end in pairs)
    except (TypeError, ValueError, OverflowError):
        raise DatasetError(f"{where}: 'times' must be a list of pairs of segments") from None
    return first * SEGMENT, (last + 1) * SEGMENT
