"""How well do groups of faces agree with people? The threshold is chosen on strangers, and tried on films.

    python studies/people.py --films msrvtt.lib --strangers flickr8k.lib --strangers coco.lib

The threshold is the similarity that one in `--odds` pairs of strangers reaches: faces of two collections of
photographs, which have nobody in common. The films are the MSR-VTT videos of `people_labels.json`: for each
span of a face, as `faces.face_spans` finds it, its seconds and a letter for whom it shows. Equal letters in
one film are one person, P is one person in two films, and - is a span that cannot be labelled (blurred,
drawn, an animal, from behind, two people). Everybody else in different films counts as different. The labels
were given by looking at the crops of each span side by side.

All faces of the films are grouped, labelled or not, and pairs of labelled spans are counted: precision is the
share of pairs in one group that are one person, recall the share of one person's pairs that are in one group.
Pairs of spans of different films in one group are counted over all spans: the films show different people, so
most of these are probably mistakes, and they grow with the square of the library.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import WordreelError
from wordreel.people.face_groups import THRESHOLD, centred, face_mean, face_spans, group_faces
from wordreel.people.group_people import EXPERT, seen_together
from wordreel.types import Float32, Int64, Track
from wordreel.util.atomic import atomic_write

LABELS = Path(__file__).with_name("people_labels.json")
OUT = Path(__file__).parents[1] / "results" / "people"
MEAN = Path(__file__).parents[1] / "src" / "wordreel" / "people" / "face_mean.npy"
THRESHOLDS = (0.30, 0.34, 0.38, 0.42, THRESHOLD, 0.52, 0.56)
UNKNOWN, SHARED = "-", "P"
NOBODY: Int64 = np.zeros((0, 2), np.int64)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--films", type=Path, required=True, help="a library of the labelled videos")
    parser.add_argument(
        "--strangers", type=Path, action="append", required=True, help="two libraries of pictures"
    )
    parser.add_argument("--odds", type=int, default=10_000)
    parser.add_argument(
        "--write-mean", action="store_true", help="write the mean of the strangers' faces anew"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(arguments)
    one, two = (faces_of(path) for path in chosen.strangers)
    if chosen.write_mean:
        with MEAN.open("wb") as file:
            np.save(file, np.concatenate([one, two]).mean(axis=0).astype(np.float32))
        face_mean.cache_clear()
    figures = {
        "strangers": {
            "faces": [len(one), len(two)],
            "pairs": len(one) * len(two),
            "odds": chosen.odds,
            "plain": quantiles(unit(one), unit(two), chosen.odds),
            "centred": quantiles(centred(one), centred(two), chosen.odds),
        },
        **measure(read_spans(chosen.films, json.loads(LABELS.read_text("utf-8")))),
    }
    chosen.out.mkdir(parents=True, exist_ok=True)
    atomic_write(chosen.out / "figures.json", (json.dumps(figures, indent=1) + "\n").encode())
    atomic_write(chosen.out / "README.md", text_of(figures).encode())
    print(text_of(figures))


def faces_of(path: Path) -> Float32:
    """Every face of a library: `[faces, dim]`."""
    with LibraryStore.open(path) as store:
        contents = [row.content for row in store.tracks() if row.expert == EXPERT and row.present]
        tracks = [store.track(content, EXPERT) for content in contents]
    return np.concatenate([track.values for track in tracks if isinstance(track, Track)])


def unit(vectors: Float32) -> Float32:
    rows: Float32 = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return rows


def quantiles(one: Float32, two: Float32, odds: int) -> dict[str, float]:
    """Similarities of strangers: the threshold, and what one pair in a hundred and in a thousand reaches."""
    alike = (one @ two.T).ravel()
    wanted = {"threshold": 1 - 1 / odds, "1 in 100": 0.99, "1 in 1000": 0.999, "1 in 10000": 0.9999}
    return {name: round(float(np.quantile(alike, share)), 4) for name, share in wanted.items()}


def read_spans(path: Path, labels: dict[str, list[list[Any]]]) -> dict[str, Any]:
    """All spans of a library: their vectors, plain and centred, films, times and labels."""
    vectors, plain, films, times, people = [], [], [], [], []
    with LibraryStore.open(path) as store:
        for file in sorted(store.files(), key=lambda one: one.path):
            track, name = store.track(file.content, EXPERT), Path(file.path).stem
            spans = face_spans(track) if isinstance(track, Track) else []
            told = labels.get(name)
            if told is not None and [tuple(row[:2]) for row in told] != [(s.start, s.end) for s in spans]:
                raise WordreelError(f"{name}: the labels are of other spans; label them again")
            for number, span in enumerate(spans):
                assert isinstance(track, Track)  # noqa: S101 - others have no spans
                letter = told[number][2] if told is not None else UNKNOWN
                vectors.append(span.vector)
                plain.append(_plain(track, span.start, span.end, span.vector))
                films.append(name)
                times.append((span.start, span.end))
                people.append("" if letter == UNKNOWN else letter if letter == SHARED else f"{name} {letter}")
    if missing := set(labels) - set(films):
        raise WordreelError(f"{len(missing)} labelled videos are not in {path}, {min(missing)} for one")
    return {
        "vectors": np.stack(vectors),
        "plain": np.stack(plain),
        "films": films,
        "times": times,
        "people": people,
    }


def _plain(track: Track, start: float, end: float, vector: Float32) -> Float32:
    """The mean of a span's rows as they are: those in its seconds that are most like it."""
    rows = np.flatnonzero((track.times[:, 0] >= start) & (track.times[:, 1] <= end))
    own = rows[centred(track.values[rows]) @ vector >= 0.5]
    return unit(track.values[own if len(own) else rows].mean(axis=0)[None])[0]


def measure(spans: dict[str, Any]) -> dict[str, Any]:
    """Precision and recall of pairs for each threshold, and without each part of the method."""
    people: list[str] = spans["people"]
    labelled = [number for number, name in enumerate(people) if name]
    together = seen_together(spans["films"], np.array(spans["times"], np.float64))
    same = sum(people[a] == people[b] for a, b in combinations(labelled, 2))

    def row(vectors: Float32, apart: Int64, threshold: float) -> dict[str, float]:
        groups = group_faces(vectors, np.full(len(vectors), -1), apart, [], threshold)
        pairs = [(a, b) for a, b in combinations(labelled, 2) if groups[a] == groups[b]]
        right = sum(people[a] == people[b] for a, b in pairs)
        return {
            "threshold": threshold,
            "pairs": len(pairs),
            "right": right,
            "precision": round(right / len(pairs), 4) if pairs else 1.0,
            "recall": round(right / same, 4),
            "across": across(groups, spans["films"]),
        }

    return {
        "films": {
            "videos": len(set(spans["films"])),
            "spans": len(people),
            "labelled": len(labelled),
            "labelled_videos": len({spans["films"][number] for number in labelled}),
            "people": len({people[number] for number in labelled}),
            "same": same,
            "different": len(labelled) * (len(labelled) - 1) // 2 - same,
        },
        "groups": [row(spans["vectors"], together, threshold) for threshold in THRESHOLDS],
        "without": {
            "plain cosines": [row(spans["plain"], together, threshold) for threshold in (*THRESHOLDS, 0.6)],
            "people seen together": [row(spans["vectors"], NOBODY, threshold) for threshold in THRESHOLDS],
        },
    }


def across(groups: Int64, films: Sequence[str]) -> int:
    """Pairs of spans of different films in one group, labelled or not: most are probably mistakes."""
    return sum(
        int(groups[a] == groups[b] and films[a] != films[b]) for a, b in combinations(range(len(films)), 2)
    )


def text_of(figures: dict[str, Any]) -> str:
    """The tables as Markdown."""
    strangers, films = figures["strangers"], figures["films"]
    lines = [
        "# People",
        "",
        "Written by `python studies/people.py`; the figures are in `figures.json`.",
        "",
        f"Strangers: {strangers['faces'][0]:,} faces of Flickr8k and {strangers['faces'][1]:,} of COCO, "
        f"{strangers['pairs']:,} pairs. One pair in {strangers['odds']:,} reaches a cosine of "
        f"**{strangers['centred']['threshold']:.2f}** after the mean of all faces is subtracted "
        f"({strangers['plain']['threshold']:.2f} before): the threshold in use is {THRESHOLD}.",
        "",
        f"Films: {films['videos']} MSR-VTT videos with faces, {films['spans']} spans of a face, half of them "
        f"less than about 30 pixels wide. Labelled: {films['labelled']} spans of {films['people']} people in "
        f"{films['labelled_videos']} videos: {films['same']} pairs of one, {films['different']:,} of two."
        " All spans are grouped; labelled pairs are counted.",
        "",
    ]
    tables = {"Average linkage of centred vectors": figures["groups"]}
    tables |= {f"Without: {name}": rows for name, rows in figures["without"].items()}
    for title, rows in tables.items():
        lines += [
            f"## {title}",
            "",
            "| threshold | pairs in one group | right | precision | recall | pairs across films |",
        ]
        lines += ["|--:|--:|--:|--:|--:|--:|"]
        for row in rows:
            mark = "**" if row["threshold"] == THRESHOLD and rows is figures["groups"] else ""
            cells = (
                f"{row['threshold']:.2f}",
                row["pairs"],
                row["right"],
                f"{row['precision']:.1%}",
                f"{row['recall']:.1%}",
                row["across"],
            )
            lines.append("| " + " | ".join(f"{mark}{cell}{mark}" for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
