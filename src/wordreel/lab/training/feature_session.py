"""A session on features: embeddings of a video's experts against captions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.lab.models.batch import JointEmbedding
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.text.pretrained import minilm_network
from wordreel.lab.training.data.caption_store import CaptionStore, frozen_states, is_frozen, sentence_vectors
from wordreel.lab.training.data.feature_dropout import FeatureDropout
from wordreel.lab.training.data.feature_store import FeatureStore
from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.data.transcripts import Transcripts, TranscriptStore
from wordreel.lab.training.distributed import World
from wordreel.lab.training.losses import build_distillation, build_loss
from wordreel.lab.training.measure import ValidationMetrics, measure, similarities
from wordreel.lab.training.optimisers import build_optimiser
from wordreel.lab.training.precision import DTYPES, TrainingPrecision
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.session import Session
from wordreel.lab.training.start import copy_tokenizer, init_weights
from wordreel.lab.training.step import Stepper
from wordreel.lab.training.training_data import TrainingData
from wordreel.types import Int64

FeatureBatch = tuple[Int64, Int64]
"""Numbers of videos `[b]` and of captions `[b]`."""


class FeatureSession(Session[FeatureBatch]):
    module: JointEmbedding

    def __init__(self, recipe: Recipe, data: TrainingData, device: torch.device, world: World) -> None:
        self.recipe: Recipe = recipe
        self.data, self.device, self.world = data, device, world
        self.has_validation = data.val is not None
        run = recipe.run
        torch.manual_seed(run.seed)
        self.module = build(recipe.model)
        init_weights(self.module, recipe.start, text_weights=data.text_weights)
        self.module.to(device).train()
        self.loss: nn.Module = build_loss(recipe.loss).to(device)
        self.precision = TrainingPrecision(run.precision_on(device.type), device.type)
        dtype, as_float32 = DTYPES[recipe.data.precision], self.precision.name == "float32"
        text = recipe.model.text
        val_words = data.val_words
        if is_frozen(text):
            val_words = val_words and frozen_states(self.module, val_words, text, device)
        dropout = FeatureDropout(
            run.token_dropout, run.expert_dropout, run.expert_dropout_spares, run.alone_chance, run.alone
        )
        self.features = FeatureStore(
            data.train, recipe.model, device, dtype, run.compile, dropout, as_float32
        )
        if not recipe.start.model:  # a model that is fine-tuned keeps the scale it was trained on
            self.module.fit_features(self.features.rows())
        self.texts = self._texts()
        self.val_features, self.val_texts = None, None
        if data.val is not None and val_words is not None and world.is_main_process:
            self.val_features = FeatureStore(data.val, recipe.model, device, dtype, as_float32=as_float32)
            self.val_texts = CaptionStore(val_words, device, dtype, as_float32=as_float32)
        self.sampler = BatchSampler.of(data.train, recipe.data, run, 2 * world.size)
        graphs = run.compile and device.type == "cuda" and world.size == 1
        captured = graphs and self.precision.name != "float16"
        self.optimiser = build_optimiser(recipe.optimiser, self.module, self.loss, captured)
        self.stepper = self._stepper()

    def _texts(self) -> CaptionStore | TranscriptStore:
        data, text, words = self.recipe.data, self.recipe.model.text, self.data.train_words
        if isinstance(words, Transcripts):
            return TranscriptStore(
                words, self.device, data.segment_words, text.max_tokens or data.segment_words + 2
            )
        if is_frozen(text):
            words = frozen_states(self.module, words, text, self.device)
        length = min(words.longest, text.max_tokens or words.longest) if self.recipe.run.compile else 0
        middles = self.data.train.spans.mean(axis=1) if data.window else None
        as_float32 = self.precision.name == "float32"
        return CaptionStore(words, self.device, DTYPES[data.precision], length, middles, as_float32)

    def _stepper(self) -> Stepper:
        recipe, teachers = self.recipe, self.data.teachers
        return Stepper(
            self.module,
            self.loss,
            self.optimiser,
            self.features,
            self.texts,
            self.device,
            self.precision,
            seed=recipe.run.seed,
            clip=recipe.optimiser.clip,
            leave_out_same=recipe.loss.same_video == "leave out",
            compile=recipe.run.compile,
            world=self.world,
            teachers=None if teachers is None else teachers.to(self.device),
            distil=None if teachers is None else build_distillation(recipe.teach),
            distil_weight=recipe.teach.weight,
            sentences=self._sentences(),
            shorten=recipe.data.shorten_captions,
            window=recipe.data.window,
            size=self.sampler.largest() // self.world.size * self.world.size,
        )

    def _sentences(self) -> Tensor | None:
        """Sentence vectors of the training captions, where soft targets compare them."""
        tokens = self.data.sentence_tokens
        if not self.recipe.loss.soft_targets or tokens is None:
            return None
        network = minilm_network(weights=self.data.text_weights).to(self.device)
        return sentence_vectors(network, tokens, self.device)

    def steps_of_epoch(self) -> int:
        return self.sampler.steps_of_epoch()

    def batches(self, epoch: int, first: int) -> Iterator[FeatureBatch]:
        yield from self.sampler.epoch(epoch)[first:]

    def step(self, batch: FeatureBatch, number: int, factor: float) -> Tensor:
        videos, captions = batch
        return self.stepper(self._numbers(videos), self._numbers(captions), number, factor)

    def _numbers(self, values: Int64) -> Tensor:
        numbers = torch.from_numpy(values)
        if self.features.storage_device.type == "cuda":
            return numbers.pin_memory().to(self.device, non_blocking=True)
        return numbers

    def measure(self) -> ValidationMetrics | None:
        if self.val_features is None or self.val_texts is None or self.data.val is None:
            return None
        val = self.data.val
        matrix = similarities(self.module, self.val_features, self.val_texts, len(val), self.precision)
        return measure(matrix, val.counts)

    def data_identity(self) -> list[str]:
        return self._identity

    @cached_property
    def _identity(self) -> list[str]:
        train, val = self.data.train, self.data.val
        sampling = hashlib.sha256(repr(train.shares).encode() + train.spans.tobytes()).hexdigest()[:16]
        return [train.fingerprint, val.fingerprint if val is not None else "", sampling]

    def parts(self) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
        return self.module, self.loss, self.optimiser, self.stepper.scaler

    def data_facts(self) -> dict[str, Any]:
        train = self.data.train
        return {"data": train.name, "videos": len(train), "captions": int(train.counts.sum())}

    @property
    def validation_name(self) -> str:
        return self.data.val.name if self.data.val is not None else ""

    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        save(folder, self.module, name, about)
        copy_tokenizer(self.recipe.model.text, self.data.tokenizer, folder)
