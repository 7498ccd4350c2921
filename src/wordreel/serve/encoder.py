"""Text embeddings for many requests at once.

A request that arrives while a batch is being encoded waits for the next batch, which takes all that wait: a
single request never waits for others, and many share the cost. The latest embeddings are cached. On the
processor a batch costs as much as its texts one by one: there, a search encodes its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from wordreel.lru_cache import LRUCache
from wordreel.models.base import EmbeddedClip, Evidence, Explanation, Model
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track

if TYPE_CHECKING:
    from wordreel.serve.metrics import Metrics

MOST = 64  # texts in a batch
CACHED = 1024  # queries; with what the default model caches of each, 12 KiB


class CachedQueryModel(Model):
    """A model behind an LRU cache of query embeddings; everything else is the model's own."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name, self.experts, self.dim = model.name, model.experts, model.dim
        self.track_experts, self.expert_weights = model.track_experts, model.expert_weights
        self.track_fingerprints = model.track_fingerprints
        self.outdated_tracks = model.outdated_tracks
        self.calibration = model.calibration
        self.latest = LRUCache[str, QueryEmbedding](CACHED)

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        return self._model.embed(tracks, clips)

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        if len(texts) > MOST:  # a bank: caching it would evict what people search for
            return self._model.encode(texts)
        return self.encode_fast(texts)

    def encode_fast(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        known = {text: self.latest.get(text) for text in texts}
        new = [text for text, query in known.items() if query is None]
        if new:
            for text, embedding in zip(new, self._model.encode_fast(new), strict=True):
                known[text] = embedding
                self.latest.put(text, embedding)
        return [query for text in texts if (query := known[text]) is not None]

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        return self._model.explain(query, tracks, clip)

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        return self._model.evidence(clips)

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        return self._model.explain_all(query, evidence)

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        return self._model.compare(tracks, clip, other_tracks, other_clip)


class Encoder:
    """Collects the texts of concurrent requests. Belongs to one event loop.

    `model` may be exchanged at any time: who searches with another one encodes the words again. With
    `batches`, searches should encode here.
    """

    def __init__(self, model: CachedQueryModel, metrics: Metrics, batches: bool = True) -> None:
        self.model, self._metrics, self.batches = model, metrics, batches
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._working: asyncio.Task[None] | None = None

    async def encode(self, texts: Sequence[str]) -> None:
        """Return when the embeddings of all these texts are cached."""
        waits = []
        for text in dict.fromkeys(text.strip() for text in texts):
            if self.model.latest.get(text) is not None:
                self._metrics.encode_cached.inc()
                continue
            if text not in self._waiting:
                self._waiting[text] = asyncio.get_running_loop().create_future()
            waits.append(self._waiting[text])
        if waits and (self._working is None or self._working.done()):
            self._working = asyncio.create_task(self._work())
        for wait in waits:
            # Shielded: one client that goes away must not take the others' answer along.
            await asyncio.shield(wait)

    async def _work(self) -> None:
        while self._waiting:
            batch = dict(list(self._waiting.items())[:MOST])
            for text in batch:
                del self._waiting[text]
            self._metrics.encode_batch.observe(len(batch))
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self.model.encode, list(batch))
            except Exception as error:
                for future in batch.values():
                    if not future.done():
                        future.set_exception(error)
                        future.exception()  # seen: nobody may be waiting any more
            else:
                for future in batch.values():
                    if not future.done():
                        future.set_result(None)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
