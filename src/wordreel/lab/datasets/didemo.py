"""DiDeMo: personal videos of up to 30 seconds, with 3 to 5 described moments each."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import (
    AnnotationFile,
    check_split,
    find_file,
    missing_file,
    read_id_list,
    require_file,
)
from wordreel.lab.datasets.json_fields import require_field, require_list, require_name
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_json

SUBFOLDERS = ("didemo_data",)
SEGMENT_SECONDS = 5  # moments are annotated in segments
CAPTIONS = {
    split: AnnotationFile(
        f"DiDeMo's {split} descriptions", (f"{split}_data.json",), "the other splits can be read"
    )
    for split in ("train", "val", "test")
}
LISTS = {
    split: AnnotationFile(
        f"the list of DiDeMo's {split} videos",
        (f"{split}_list.txt",),
        "every described video is taken; the papers use a few videos less for training",
    )
    for split in ("train", "val", "test")
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split: each description with its moment, the mean over annotators.

    Ids are file names up to the first dot.
    """
    check_split("didemo", split, SPLITS)
    path = require_file(folder, CAPTIONS[split], SUBFOLDERS)
    captions: CaptionsById = {}
    files: dict[str, str] = {}
    for number, entry in enumerate(require_list(read_json(path), path, "the descriptions"), 1):
        where = f"{path}, entry {number}"
        file = require_name(entry, "video", where)
        video = file.partition(".")[0]
        files.setdefault(video, file)
        add_caption(
            captions,
            video,
            require_field(entry, "description", where),
            where,
            *_moment(entry.get("times"), where),
        )
    listed = find_file(folder, LISTS[split], SUBFOLDERS)
    if listed is None:
        return build_split(
            "didemo", split, captions, captions, path, files, [missing_file(folder, LISTS[split])]
        )
    order = [file.partition(".")[0] for file in read_id_list(listed)]
    return build_split("didemo", split, order, captions, path, files)


def _moment(times: object, where: str) -> tuple[float | None, float | None]:
    if not times:
        return None, None
    pairs = require_list(times, where, "'times'")
    try:
        first = fmean(float(start) for start, _ in pairs)
        last = fmean(float(end) for _, end in pairs)
    except (TypeError, ValueError, OverflowError):
        raise DatasetError(f"{where}: 'times' must be a list of pairs of segments") from None
    return first * SEGMENT_SECONDS, (last + 1) * SEGMENT_SECONDS
