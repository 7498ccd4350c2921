"""Batches of features: embeddings of a video's experts against captions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.models.batch import (
    ExpertFeatures,
    JointEmbedding,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    similarity,
)
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.training.data.caption_store import CaptionStore, frozen_states, is_frozen
from wordreel.lab.training.data.feature_store import FeatureStore
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.transcripts import Transcripts, TranscriptStore
from wordreel.lab.training.init_weights import copy_tokenizer, init_weights
from wordreel.lab.training.losses import build_distillation, same_video
from wordreel.lab.training.measure import embed_texts, embed_videos, similarity_matrix
from wordreel.lab.training.session import BatchSource, NumberedBatch
from wordreel.types import Float32


class FeatureBatches(BatchSource):
    """Features and captions on the device; a batch is gathered from them by its numbers.

    With `run.compile` a step is compiled, on a GPU to CUDA graphs. Only full batches are: a resumed run may
    begin with another size, and must compile the same.
    """

    module: JointEmbedding

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        recipe, data, device, model = self.recipe, self.data, self.device, self.recipe.model
        if isinstance(model, VideoTextConfig) or data.train.paths:
            raise TrainingError(f"the recipe {recipe.name} does not train on this kind of data")
        self.module = build(model)
        init_weights(self.module, recipe.start)
        self.module.to(device).train()
        run = recipe.run
        self.features = FeatureStore(data.train, model, device, run.compile, run.expert_dropout)
        self.texts = self._train_texts(data.train_words)
        if data.val is not None and data.val_words is not None and self.world.is_main_process:
            self.val_features = FeatureStore(data.val, model, device)
            self.val_texts = CaptionStore(self._states(data.val_words), device)
        self.teachers = None if data.teachers is None else data.teachers.to(device)
        self.distil = build_distillation(recipe.teach)
        self.network = self.world.wrap(self.module, device)
        mode = "reduce-overhead" if device.type == "cuda" else "default"
        self.full = self.sampler.largest() // self.world.size * self.world.size  # pairs of a full batch
        self._compiled: Any = torch.compile(self._compare, mode=mode) if run.compile else self._compare

    def _states(self, words: Packed) -> Packed:
        """Return what is stored of captions: a frozen text network's states, or what it reads."""
        text = self.module.config.text
        return frozen_states(self.module, words, text, self.device) if is_frozen(text) else words

    def _train_texts(self, words: Packed | Transcripts) -> CaptionStore | TranscriptStore:
        data, text = self.recipe.data, self.module.config.text
        if isinstance(words, Transcripts):
            fixed = text.max_tokens if self.recipe.run.compile else 0
            return TranscriptStore(words, self.device, data.segment_words, fixed)
        words = self._states(words)
        length = min(words.longest, text.max_tokens or words.longest) if self.recipe.run.compile else 0
        middles = self.data.train.spans.mean(axis=1) if data.window else None
        return CaptionStore(words, self.device, length, middles)

    def load(self, batches: Iterator[NumberedBatch]) -> Iterator[tuple[Tensor, Tensor]]:
        stores = (self.features, self.texts)
        for batch in batches:
            numbers = [self.world.divisible(torch.from_numpy(part)) for part in batch]
            videos, captions = (
                part.pin_memory().to(self.device, non_blocking=True)
                if store.storage_device.type == "cuda"
                else part
                for part, store in zip(numbers, stores, strict=True)
            )
            yield videos, captions

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        videos, captions = batch
        tokens, middles = self.texts.sample(self.world.shard(captions))
        features = self.features.batch(
            self.world.shard(videos), training=True, centres=middles, window=self.recipe.data.window
        )
        taught = None if self.teachers is None else self.teachers.similarities(videos, captions)
        leave_out = self.recipe.loss.same_video == "leave out"
        same = same_video(videos).to(self.device) if leave_out else None
        compare = self._compiled if len(videos) == self.full else self._compare
        loss: Tensor = compare(features, tokens, same, taught)
        return loss

    def _compare(
        self,
        features: dict[str, ExpertFeatures],
        tokens: TokenBatch,
        same: Tensor | None,
        taught: Tensor | None,
    ) -> Tensor:
        with self.precision.autocast():
            videos, queries = self.network(features, tokens)
        vectors, available, query_vectors, weights = self.world.gather((*videos, *queries))
        compared = similarity(
            QueryEmbeddings(query_vectors.float(), weights.float()),
            VideoEmbeddings(vectors.float(), available),
        )
        loss = self.loss_function(compared, same)
        return loss if taught is None else loss + self.recipe.teach.weight * self.distil(compared, taught)

    def similarities(self) -> Float32:
        videos = embed_videos(self.module, self.val_features, self.precision)
        return similarity_matrix(embed_texts(self.module, self.val_texts, self.precision), videos)

    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        save(folder, self.module, name, about)
        copy_tokenizer(self.module.config.text, self.data.tokenizer, folder)
