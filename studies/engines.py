"""Libraries that are only read, embedded by any checkpoint; captions that are encoded once.

What is expensive is kept under `--cache`: the embeddings of videos by library, model and experts, the vectors
of captions by text tower. Scores are those of wordreel's own search (`search.searcher`).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import T2V, V2T, progress

from wordreel.banks.caption_queries import caption_queries
from wordreel.catalogue.records import MatchedLines, StoredClip, StoredFile, TrackRow
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.hubness import Direction
from wordreel.lab.evaluate.library import similarities
from wordreel.models.base import Explanation, Model, mixture_weights
from wordreel.models.joint.adapter import FILE
from wordreel.models.joint.model import Joint
from wordreel.retrieval.caption_ranks import Captions
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher
from wordreel.types import Absent, Bool, Clip, Float32, QueryEmbedding, Track

CHUNK = 4_096  # captions encoded between two writes
REMEMBERED = 4  # matrices of scores, some hundred MB each
_LATEST: OrderedDict[str, Float32] = OrderedDict()


class View(LibraryStore):
    """A library that is only read: embeddings go to `cache`, and experts or videos can be left out."""

    def __init__(
        self, path: Path, cache: Path, experts: Sequence[str] | None = None, only: Sequence[str] | None = None
    ) -> None:
        super().__init__(path)
        self._experts = None if experts is None else frozenset(experts)
        names = None if only is None else frozenset(only)
        self._contents = frozenset(
            file.content
            for file in super().files()
            if names is None or {Path(file.path).name, Path(file.path).stem} & names
        )
        made = [(row.content, row.expert, row.hash) for row in self.tracks()]
        facts = repr((sorted(self._contents), sorted(made, key=str)))
        self.cache = cache / "videos" / hashlib.sha256(facts.encode()).hexdigest()[:16]
        self._lines: dict[tuple[str, ...], MatchedLines] = {}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nothing of the library is written, so its lock is left alone."""
        yield

    def files(self) -> list[StoredFile]:
        return [file for file in super().files() if file.content in self._contents]

    def clips(self, content: str | None = None) -> list[StoredClip]:
        return [clip for clip in super().clips(content) if clip.content in self._contents]

    def clip_ids(self, after: int = 0) -> list[int]:
        return [clip.id for clip in self.clips() if clip.id > after]

    def tracks(self, content: str | None = None) -> list[TrackRow]:
        return self._shown(super().tracks(content))

    def tracks_of(self, contents: Sequence[str]) -> list[TrackRow]:
        return self._shown(super().tracks_of(contents))

    def _shown(self, rows: Sequence[TrackRow]) -> list[TrackRow]:
        found = [row for row in rows if row.content in self._contents]
        return [row for row in found if self._experts is None or row.expert in self._experts]

    def track(self, content: str, expert: str) -> Track | Absent | None:
        if self._experts is not None and expert not in self._experts:
            return Absent("left out")
        return super().track(content, expert)

    def find_lines(self, terms: Sequence[str], limit: int = 10_000) -> MatchedLines:
        key = (*terms, str(limit))
        if key not in self._lines:
            found = super().find_lines(terms, limit)
            lines = self.read_lines(found.ids)
            rows = zip(found.ids, found.contents, found.starts, found.ends, strict=True)
            kept = [
                row
                for row in rows
                if row[1] in self._contents
                and (self._experts is None or lines[row[0]].expert in self._experts)
            ]
            self._lines[key] = MatchedLines(*zip(*kept, strict=True))
        return self._lines[key]


class Kept:
    """A function of texts, `make(texts) -> [n, …]`, whose rows are kept in a folder."""

    def __init__(self, folder: Path, make: Callable[[list[str]], Float32]) -> None:
        self._folder, self._make = folder, make
        self._parts: list[Float32] = []
        self._place: dict[str, tuple[int, int]] = {}
        self._files: set[Path] = set()

    def rows(self, texts: Sequence[str], say: str = "") -> Float32:
        """`[texts, …]`; only texts that were never seen are computed."""
        if any(text not in self._place for text in texts):
            self._look()
        new = [text for text in dict.fromkeys(texts) if text not in self._place]
        for start in range(0, len(new), CHUNK):
            some = new[start : start + CHUNK]
            if say and len(new) > CHUNK:
                progress(f"{say}: {start} of {len(new)} captions")
            self._add(some, self._write(some, self._make(some)))
        places = [self._place[text] for text in texts]
        return np.stack([self._parts[part][row] for part, row in places])

    def _look(self) -> None:
        """Take in what is in the folder, also what somebody else put there meanwhile."""
        for path in sorted(set(self._folder.glob("*.json")) - self._files):
            self._files.add(path)
            self._add(json.loads(path.read_text("utf-8")), np.load(path.with_suffix(".npy"), mmap_mode="r"))

    def _add(self, texts: Sequence[str], rows: Float32) -> None:
        self._place |= {text: (len(self._parts), row) for row, text in enumerate(texts)}
        self._parts.append(rows)

    def _write(self, texts: Sequence[str], rows: Float32) -> Float32:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{uuid.uuid4().hex}.npy"
        np.save(path, rows.astype(np.float32))
        fresh = path.with_suffix(".new")  # the list last: rows without it do not count
        fresh.write_text(json.dumps(list(texts)), "utf-8")
        fresh.replace(path.with_suffix(".json"))
        self._files.add(path.with_suffix(".json"))
        kept: Float32 = np.load(path, mmap_mode="r")
        return kept


class Encoded(Model):
    """The default model, or another checkpoint of it, that encodes each caption once."""

    def __init__(self, store: WeightStore, cache: Path, path: Path = FILE) -> None:
        """`path` is an adapter that stands beside its text tower."""
        model = Joint(store, path, path.parent)
        self.name, self.experts, self.dim = model.name, model.experts, model.dim
        self.track_experts, self.calibration = model.track_experts, model.calibration
        self._model = model
        self.expert_weights = model.expert_weights
        self._weights = mixture_weights(model)
        self._known = Kept(cache / "captions" / model.tower.fingerprint, model.tower.encode)

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        return self._model.embed(tracks, clips)

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """As the model has them, from the cache."""
        shape = len(self.experts), self.dim
        return [
            QueryEmbedding(np.broadcast_to(row, shape), self._weights, text)
            for row, text in zip(self.sentences(texts), texts, strict=True)
        ]

    def sentences(self, texts: Sequence[str]) -> Float32:
        """`[texts, dim]`: what the text tower makes of them."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return self._known.rows([text.strip() for text in texts], self.fingerprint)

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode many captions at once, so that neighbours of like length stand together."""
        self.sentences(texts)

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        return self._model.explain(query, tracks, clip)


def searcher_of(view: LibraryStore, model: Encoded) -> Searcher:
    """A library embedded by a model; a `View` keeps its own files untouched."""
    embed_library(view, model)
    return Searcher.open(view, model)


def scores(searcher: Searcher, texts: Sequence[str], *told: Mapping[str, Any]) -> list[Float32]:
    """`[texts, videos]` for each group of captioned videos, in the order of `contents_of`, from one pass."""
    column = {content: number for number, content in enumerate(searcher.snapshot.contents())}
    unique = list(dict.fromkeys(text.strip() for text in texts))
    whole = _whole(searcher, unique)
    place = {text: row for row, text in enumerate(unique)}
    rows = np.array([place[text.strip()] for text in texts])[:, None]
    return [whole[rows, [column[content] for content in contents_of(searcher, each)]] for each in told]


def _whole(searcher: Searcher, texts: list[str]) -> Float32:
    """`[texts, all videos]`; the latest few are remembered, since banks come again and again."""
    facts = (searcher.model.fingerprint, str(searcher.store.cache), *texts)
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    if key not in _LATEST:
        if isinstance(searcher.model, Encoded):
            searcher.model.prepare(texts)
        _LATEST[key] = similarities(searcher, texts, searcher.snapshot.contents())
        while len(_LATEST) > REMEMBERED:
            _LATEST.popitem(last=False)
    return _LATEST[key]


def contents_of(searcher: Searcher, told: Mapping[str, Any]) -> list[str]:
    """The videos of these ids, each once."""
    named: dict[str, str] = {}
    for file in searcher.store.files():
        named.setdefault(Path(file.path).name, file.content)
        named.setdefault(Path(file.path).stem, file.content)
    return list(dict.fromkeys(named[name] for name in told if name in named))


@dataclass(frozen=True)
class Ask:
    """Captions of some videos of a searcher, and what they score there."""

    sims: Float32  # [captions, videos]
    captions: Captions
    texts: tuple[str, ...]
    bank: Float32 | None = None  # [bank videos, captions]

    @property
    def rows(self) -> dict[Direction, Float32]:
        """Queries in the rows, either way."""
        return {T2V: self.sims, V2T: np.ascontiguousarray(self.sims.T)}


def ask(searcher: Searcher, told: Mapping[str, Sequence[str]], bank: Mapping[str, Any] | None = None) -> Ask:
    """Score the captions of a split against its videos, and against other videos of the library: a bank."""
    found = caption_queries(searcher, told)
    own = dict.fromkeys(found.names)
    sims, *others = scores(searcher, found.texts, own, *([] if bank is None else [bank]))
    valid = np.ones(len(found.texts), bool)
    captions = Captions(len(found.contents), np.asarray(found.right, np.int64), valid)
    turned = np.ascontiguousarray(others[0].T) if others else None
    return Ask(sims, captions, found.texts, turned)
