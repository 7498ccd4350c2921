"""What `wordreel evaluate` reads, and how it counts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordreel.hubness import Direction
    from wordreel.lab.datasets.protocols import EvaluationProtocol
    from wordreel.lab.datasets.types import Split
    from wordreel.lab.evaluate.runs import Modality
    from wordreel.lab.reports.report import ReportRequest
    from wordreel.retrieval.caption_ranks import Protocol

ANNOTATIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Counting:
    """How the report counts; `v2t` is None where nobody chose."""

    title: str
    directions: tuple[Direction, ...]
    v2t: Protocol | None
    seeds: tuple[int, ...]
    modality: Modality | None = None

    def request(
        self,
        inputs: list[dict[str, str]],
        protocol: EvaluationProtocol | None = None,
        notes: Sequence[str] = (),
    ) -> ReportRequest:
        from wordreel.lab.reports.report import ReportRequest

        default: Any = protocol.v2t if protocol else None
        modality: Any = protocol.modality if protocol else None
        return ReportRequest(
            self.title,
            command(),
            inputs,
            self.directions,
            self.v2t or default or "ce",
            self.seeds,
            tuple(notes),
            self.modality or modality or "video",
        )


@dataclass(frozen=True)
class CaptionSource:
    """Captions to read: a file, an address in one, or a named protocol with its data."""

    source: str
    data: Path | None = None
    split: str | None = None
    ids: str | None = None

    @property
    def label(self) -> str:
        """What labels call a bank of these captions."""
        name = Path(self.source).name
        return f"{name} of {Path(self.ids).name}" if self.ids else name

    def read(self) -> Split:
        from wordreel.lab.datasets import json_captions, registry

        split = registry.read(self.source, self.split, self.data)
        if not self.ids:
            return split
        chosen = dict.fromkeys(json_captions.read_ids(self.ids))
        items = {item.id: item for item in split.items}
        return replace(split, items=tuple(items[name] for name in chosen if name in items))

    def files(self) -> list[Path]:
        """What is read: one file, or the annotations in a folder."""
        from wordreel.util import json_address

        path = self.data or json_address.address_file(self.source)
        if not path.is_dir():
            return [path]
        return sorted(one for one in path.iterdir() if one.suffix.lower() in ANNOTATIONS)

    def inputs(self, what: str) -> list[dict[str, str]]:
        from wordreel.lab.reports.report_files import input_of
        from wordreel.util import json_address

        inputs = [input_of(what, path) for path in self.files()]
        if self.ids:
            path = (
                json_address.address_file(self.ids)
                if json_address.is_json_address(self.ids)
                else Path(self.ids)
            )
            inputs.append(input_of(f"{what}: ids", path))
        return inputs


def caption_counts(per_video: int | None, counts: str | None, videos: int) -> Any:
    """Captions of each video from a number or a file of numbers; None where they are shared out evenly."""
    from wordreel.lab.evaluate.matrices import read_counts

    if per_video is not None:
        return [per_video] * videos
    return None if counts is None else read_counts(counts)


def command() -> str:
    """The command line, with files by their base names."""
    return shlex.join(["wordreel", *(Path(a).name if "/" in a else a for a in sys.argv[1:])])
