"""The captions of published sets of videos and sounds, from the files their authors give out.

Each reader gets the folder of a dataset's files (`annotation_files`) and a split, and returns its items in
the order of the split's list, or of the captions where there is no list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFolder, read_id_list
from wordreel.lab.datasets.caption_pickles import join_captions, read_caption_mapping
from wordreel.lab.datasets.split_builder import (
    CaptionsById,
    add_caption,
    require_dict,
    require_field,
    require_list,
    require_name,
)
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_columns, read_json, read_lines

MSRVTT_TAGS = {"train": ("train",), "val": ("validate", "val"), "test": ("test",)}
DIDEMO_SEGMENT = 5  # seconds; moments are annotated in segments
LSMDC_COLUMNS = 6  # clip, start and end aligned, start and end extracted, sentence
YOUTUBE_ID_CHARS = 11


def msrvtt(files: AnnotationFolder, split: str) -> Split:
    """Read a split of MSR-VTT: the official ones, 1k-A (JSFusion) and 1k-B (Miech)."""
    if split == "1k-a":
        return _msrvtt_pairs(files)
    if whole := files.find("all"):
        paths = [whole]
    else:
        parts = {"train": ["train_val"], "val": ["train_val"], "test": ["test"]}
        paths = [files.require(key) for key in parts.get(split, ["train_val", "test"])]
    tags: dict[str, str] = {}
    captions: CaptionsById = {}
    for path in paths:
        content = read_json(path)
        for video in require_list(require_field(content, "videos", path), path, "'videos'"):
            tags[require_name(video, "video_id", path)] = str(video.get("split", ""))
        for sentence in require_list(require_field(content, "sentences", path), path, "'sentences'"):
            video_id = require_name(sentence, "video_id", path)
            add_caption(captions, video_id, require_field(sentence, "caption", path), f"{path}, {video_id!r}")
    if split in MSRVTT_TAGS and any(tags.values()):
        order = [video_id for video_id, tag in tags.items() if tag in MSRVTT_TAGS[split]]
    elif split == "1k-a-train" and files.find(f"list.{split}") is None:
        test_ids = {item.id for item in _msrvtt_pairs(files).items}
        order = [video_id for video_id in tags if video_id not in test_ids]
        return files.build(split, order, captions, paths[0], missing=[files.missing(f"list.{split}")])
    else:
        order = read_id_list(files.require(f"list.{split}"))
    return files.build(split, order, captions, paths[0])


def _msrvtt_pairs(files: AnnotationFolder) -> Split:
    path = files.require("pairs")
    captions = _from_table(path, ("video_id",), ("sentence", "caption"))
    return files.build("1k-a", captions, captions, path)


def msvd(files: AnnotationFolder, split: str) -> Split:
    """Read a split of MSVD.

    Only `raw-captions.pkl` has the published captions: lower case, no punctuation.
    """
    path = files.require("captions")
    order = read_id_list(files.require(f"list.{split}"))
    captions: CaptionsById = {}
    if path.suffix == ".pkl":
        for name, sentences in read_caption_mapping(path).items():
            add_all(captions, name, join_captions(sentences, f"{path}, {name!r}"), path)
    elif path.suffix == ".txt":
        for number, line in read_lines(path):
            name, space, text = line.strip().partition(" ")
            if not line.startswith("#") and not space:
                raise DatasetError(
                    f"{path}, line {number}: an id and a caption are expected, not {name[:60]!r}"
                )
            if not line.startswith("#"):
                add_caption(captions, name, text, f"{path}, line {number}")
    else:
        names = [("videoid",), ("start",), ("end",), ("language",), ("description",)]
        for number, cells in read_columns(path, names, "\t" if path.suffix == ".tsv" else ","):
            video, start, end, language, text = cells
            if language.strip().lower() == "english":
                add_caption(captions, f"{video}_{start}_{end}", text, f"{path}, line {number}")
    return files.build(split, order, captions, path)


def lsmdc(files: AnnotationFolder, split: str) -> Split:
    """Read a split of LSMDC. The times are dropped: they are of the film, and the clips are already cut."""
    path = files.require(f"captions.{split}")
    captions: CaptionsById = {}
    for number, line in read_lines(path):
        cells = line.split("\t")
        if len(cells) == LSMDC_COLUMNS - 1:
            cells.append("")  # a few published clips have no sentence
        if len(cells) != LSMDC_COLUMNS:
            raise DatasetError(
                f"{path}, line {number}: {len(cells)} columns; LSMDC has {LSMDC_COLUMNS}, separated by tabs"
            )
        add_caption(captions, cells[0].strip(), cells[-1], f"{path}, line {number}")
    paths = {name: f"{name.rpartition('_')[0]}/{name}.avi" for name in captions}
    return files.build(split, captions, captions, path, paths)


def didemo(files: AnnotationFolder, split: str) -> Split:
    """Read a split of DiDeMo: each description with its moment, the mean over annotators.

    Ids are file names up to the first dot.
    """
    path = files.require(f"captions.{split}")
    captions: CaptionsById = {}
    paths: dict[str, str] = {}
    for number, entry in enumerate(require_list(read_json(path), path, "the descriptions"), 1):
        where = f"{path}, entry {number}"
        file = require_name(entry, "video", where)
        video = file.partition(".")[0]
        paths.setdefault(video, file)
        text, moment = require_field(entry, "description", where), _didemo_moment(entry.get("times"), where)
        add_caption(captions, video, text, where, *moment)
    listed = files.find(f"list.{split}")
    if listed is None:
        notes = [files.missing(f"list.{split}")]
        return files.build(split, captions, captions, path, paths, notes)
    order = [file.partition(".")[0] for file in read_id_list(listed)]
    return files.build(split, order, captions, path, paths)


def _didemo_moment(times: object, where: str) -> tuple[float | None, float | None]:
    if not times:
        return None, None
    pairs = require_list(times, where, "'times'")
    try:
        first, last = (fmean(float(segment) for segment in side) for side in zip(*pairs, strict=True))
    except (TypeError, ValueError, OverflowError):
        raise DatasetError(f"{where}: 'times' must be a list of pairs of segments") from None
    return first * DIDEMO_SEGMENT, (last + 1) * DIDEMO_SEGMENT


def activitynet(files: AnnotationFolder, split: str) -> Split:
    """Read a split of ActivityNet Captions: sentences with their spans. Ids begin with `v_`."""
    path = files.require(f"captions.{split}")
    captions: CaptionsById = {}
    for name, entry in require_dict(read_json(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        sentences, times = (require_field(entry, key, where) for key in ("sentences", "timestamps"))
        add_all(captions, name, require_list(sentences, where, "'sentences'"), path, times)
    listed = files.find(f"list.{split}") if f"list.{split}" in files.dataset.files else None
    order = require_list(read_json(listed), listed, "the ids") if listed else list(captions)
    return files.build(split, map(str, order), captions, path)


def vatex(files: AnnotationFolder, split: str) -> Split:
    """Read a split of VATEX, English captions only. Two lists of 1,500 test videos are in use."""
    if split.startswith("official"):
        path = files.require(f"captions.{split}")
        captions = _vatex_captions([path])
        return files.build(split, captions, captions, path)
    order = read_id_list(files.require(f"list.{split}"))
    keys = (
        ["all"] if files.find("all") else [key for key in files.dataset.files if key.startswith("captions.")]
    )
    paths = [path for path in map(files.find, keys) if path]
    paths = paths or [files.require("all")]
    return files.build(split, order, _vatex_captions(paths), paths[0])


def _vatex_captions(paths: Iterable[Path]) -> CaptionsById:
    captions: CaptionsById = {}
    for path in paths:
        content = read_json(path)
        if not isinstance(content, dict):
            entries = require_list(content, path, "the captions")
            content = {require_name(entry, "videoID", path): entry for entry in entries}
        for video, entry in content.items():
            where = f"{path}, {video!r}"
            texts = require_field(require_dict(entry, where, "an entry"), "enCap", where)
            add_all(captions, video, require_list(texts, where, "'enCap'"), path)
    return captions


def queryd(files: AnnotationFolder, split: str) -> Split:
    """Read a split of QuerYD: each description by itself, with its span if the file of times exists."""
    path = files.require("captions")
    order = read_id_list(files.require(f"list.{split}"))
    timed = files.find("times")
    times: Mapping[str, Any] = read_caption_mapping(timed) if timed else {}
    captions: CaptionsById = {}
    for name, sentences in read_caption_mapping(path).items():
        texts = join_captions(sentences, f"{path}, {name!r}")
        add_all(captions, name, texts, timed or path, times.get(name))
    notes = [] if timed else [files.missing("times")]
    return files.build(split, order, captions, path, missing=notes)


def audiocaps(files: AnnotationFolder, split: str) -> Split:
    """Read a split of AudioCaps: one caption of a clip for training and five for testing."""
    path = files.require(f"captions.{split}")
    captions = _from_table(path, ("youtube_id",), ("caption",))
    listed = files.find(f"list.{split}")
    if listed is None:
        notes = [files.missing(f"list.{split}")]
        return files.build(split, captions, captions, path, missing=notes)
    order = [name if name in captions else name[:YOUTUBE_ID_CHARS] for name in read_id_list(listed)]
    return files.build(split, order, captions, path)


def _from_table(path: Path, name: tuple[str, ...], caption: tuple[str, ...]) -> CaptionsById:
    """Return the captions in a CSV file with a header; columns are given by their possible names."""
    captions: CaptionsById = {}
    for line, (item, text) in read_columns(path, [name, caption]):
        add_caption(captions, item.strip(), text, f"{path}, line {line}")
    return captions


def add_all(
    captions: CaptionsById, item: str, texts: Sequence[object], path: Path, spans: object = None
) -> None:
    """Add all captions of an item, each with its span `[start, end]` in seconds where there are spans."""
    where = f"{path}, {item!r}"
    pairs = [(None, None)] * len(texts) if spans is None else require_list(spans, where, "the times")
    if len(pairs) != len(texts):
        raise DatasetError(f"{where}: {len(pairs)} times for {len(texts)} captions")
    captions.setdefault(item, [])
    for text, span in zip(texts, pairs, strict=True):
        pair = require_list(span, where, "a time")
        if len(pair) != 2:
            raise DatasetError(f"{where}: a time has a start and an end, not {len(pair)} numbers")
        add_caption(captions, item, text, where, *pair)
