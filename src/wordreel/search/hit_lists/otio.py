"""Hits as an OpenTimelineIO timeline: a track of pictures and one of sound, with the reasons as metadata.

Clips have the schema `Clip.1`, which every version of OpenTimelineIO reads. Times count frames of each file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from wordreel.search.hit_lists.edl import frame_at
from wordreel.search.hit_lists.moments import ListedMoment, timeline_rate

Schema = dict[str, Any]


def otio(moments: Sequence[ListedMoment]) -> str:
    """The timeline as JSON."""
    tracks = [
        _track("Video", [_item(moment, moment.pictures) for moment in moments]),
        _track("Audio", [_item(moment, moment.sound) for moment in moments]),
    ]
    stack = _composable("Stack.1", "tracks") | {"source_range": None, "children": tracks}
    timeline: Schema = {
        "OTIO_SCHEMA": "Timeline.1",
        "name": "wordreel",
        "metadata": {},
        "global_start_time": _time(0, timeline_rate(moments)),
        "tracks": stack,
    }
    return json.dumps(timeline, indent=1) + "\n"


def _track(kind: str, children: list[Schema]) -> Schema:
    return _composable("Track.1", kind) | {"kind": kind, "source_range": None, "children": children}


def _item(moment: ListedMoment, there: bool) -> Schema:
    """A clip, or a gap of its length where the file has no such stream."""
    first = frame_at(moment.start, moment.rate)
    length = max(1, frame_at(moment.end, moment.rate) - first)
    if not there:
        return _composable("Gap.1", "") | {"source_range": _range(0, length, moment.rate)}
    whole = max(first + length, frame_at(moment.duration, moment.rate))
    reference: Schema = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "name": moment.name,
        "metadata": {},
        "target_url": moment.address,
        "available_range": _range(0, whole, moment.rate),
    }
    facts = {
        "rank": moment.rank,
        "score": moment.score,
        "confidence": moment.confidence,
        "reason": moment.reason,
        "content": moment.content,
    }
    return _composable("Clip.1", moment.name) | {
        "metadata": {"wordreel": facts},
        "source_range": _range(first, length, moment.rate),
        "media_reference": reference,
    }


def _composable(schema: str, name: str) -> Schema:
    return {"OTIO_SCHEMA": schema, "name": name, "metadata": {}, "effects": [], "markers": []}


def _range(first: int, length: int, rate: Fraction) -> Schema:
    return {
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": _time(first, rate),
        "duration": _time(length, rate),
    }


def _time(frames: int, rate: Fraction) -> Schema:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(frames)}
