"""One step of training: gather a batch, embed, compare, move the weights.

On a GPU that holds the features, with `compile`, a step is one CUDA graph over compiled kernels: the host
writes the numbers of the next pairs and starts it. Every random number of a step is a function of the seed
and the step, so a step can be redone exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.lab.models.batch import (
    ExpertFeatures,
    JointEmbedding,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    similarity,
)
from wordreel.lab.training.data.caption_store import CaptionStore, shorten
from wordreel.lab.training.data.feature_store import FeatureStore
from wordreel.lab.training.data.transcripts import TranscriptStore
from wordreel.lab.training.distributed import World
from wordreel.lab.training.losses import DistillationLoss
from wordreel.lab.training.losses.masks import same_video
from wordreel.lab.training.optimisers.radam import RAdam
from wordreel.lab.training.precision import TrainingPrecision, backward_and_step
from wordreel.lab.training.teachers import Teachers

EAGER = 3  # steps before a graph is captured: kernels are compiled and chosen in them


@dataclass
class Stepper:
    module: JointEmbedding
    loss: nn.Module
    optimiser: torch.optim.Optimizer
    features: FeatureStore
    texts: CaptionStore | TranscriptStore
    device: torch.device
    precision: TrainingPrecision
    seed: int = 0
    clip: float = 0.0
    leave_out_same: bool = True
    compile: bool = False
    world: World = field(default_factory=World)
    teachers: Teachers | None = None
    distil: DistillationLoss | None = None
    distil_weight: float = 1.0
    sentences: Tensor | None = None  # [captions, dim] unit vectors, which soft targets compare
    shorten: float = 0.0  # chance that a caption is cut to some of its words
    window: float = 0.0  # seconds of a video around what a caption is about; 0: all
    size: int = 0  # of the batches that are compiled; 0: that of the first one
    scaler: torch.amp.GradScaler = field(init=False)

    def __post_init__(self) -> None:
        self.scaler = self.precision.grad_scaler()
        self.network = self.world.wrap(self.module, self.device)
        self._compared: Any = torch.compile(self._compare) if self.compile else self._compare
        self._graph: Any = None
        self._inputs: tuple[Tensor, Tensor] | None = None
        self._captured_loss: Tensor | None = None
        self._eager = 0
        self.captures = (
            self.compile
            and self.device.type == "cuda"
            and self.world.size == 1
            and not self.scaler.is_enabled()
            and self.features.storage_device == self.texts.storage_device == self.device
        )
        self._stream: Any = torch.cuda.Stream(self.device) if self.captures else None  # type: ignore[no-untyped-call]

    def __call__(self, videos: Tensor, captions: Tensor, number: int, factor: float) -> Tensor:
        """Step `number` (0, 1, …) on these pairs, at `factor` times the learning rate; the loss, detached."""
        seed_step(self.seed, number, self.world.rank)
        set_lr(self.optimiser, factor)
        videos, captions = self.world.divisible(videos), self.world.divisible(captions)
        if self._inputs is not None and self._inputs[0].shape == videos.shape:
            return self._replay(videos, captions)
        if self.captures and self._ready() and self._graph is None and self._usual(videos):
            return self._capture(videos, captions)
        self._eager += 1
        # A graph writes gradients to places of its own, which must stay theirs.
        self.optimiser.zero_grad(set_to_none=self._graph is None)
        if self._stream is None:
            return self._eager_step(videos, captions)
        # What is to be captured is first run on the stream that it will be captured on.
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            loss = self._eager_step(videos, captions)
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return loss

    def _usual(self, videos: Tensor) -> bool:
        """Whether a batch has the one size that is compiled. A resumed run may begin with another one."""
        if self.size == 0:
            self.size = len(videos)
        return len(videos) == self.size

    def _ready(self) -> bool:
        final = not isinstance(self.optimiser, RAdam) or self.optimiser.rule_is_final
        return self._eager >= EAGER and final

    # Plain steps

    def _eager_step(self, videos: Tensor, captions: Tensor) -> Tensor:
        loss = self._loss(videos, captions)
        backward_and_step(loss, self.optimiser, self.scaler, self.clip)
        return loss.detach()

    def _loss(self, videos: Tensor, captions: Tensor) -> Tensor:
        own_videos, own_captions = self.world.shard(videos), self.world.shard(captions)
        tokens, middles = self.texts.sample(own_captions)
        if self.shorten:
            tokens = shorten(tokens, self.shorten)
        batch = self.features.batch(own_videos, training=True, centres=middles, window=self.window)
        teacher_similarities = None if self.teachers is None else self.teachers.similarities(videos, captions)
        same = same_video(videos).to(self.device) if self.leave_out_same else None
        alike = None
        if self.sentences is not None:
            sentences = self.sentences[captions.to(self.device)]
            alike = sentences @ sentences.T
        compare = self._compared if self._usual(videos) else self._compare
        loss: Tensor = compare(batch, tokens, same, teacher_similarities, alike)
        return loss

    def _compare(
        self,
        batch: dict[str, ExpertFeatures],
        tokens: TokenBatch,
        same: Tensor | None,
        teacher_similarities: Tensor | None,
        alike: Tensor | None,
    ) -> Tensor:
        with self.precision.autocast():
            videos, queries = self.network(batch, tokens)
        videos, queries = self.world.gather(videos, queries)
        similarities = similarity(
            QueryEmbeddings(queries.vectors.float(), queries.weights.float()),
            VideoEmbeddings(videos.vectors.float(), videos.available),
        )
        loss: Tensor = (
            self.loss(similarities, same) if alike is None else self.loss(similarities, same, alike)
        )
        if teacher_similarities is not None and self.distil is not None:
            loss = loss + self.distil_weight * self.distil(similarities, teacher_similarities, same)
        return loss

    # The step as a CUDA graph

    def _capture(self, videos: Tensor, captions: Tensor) -> Tensor:
        self._inputs = (videos.clone(), captions.clone())
        self.optimiser.zero_grad(set_to_none=True)
        ours = self.optimiser if isinstance(self.optimiser, RAdam) else None
        if ours is not None:
            ours.prepare()
        torch.cuda.synchronize(self.device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream):
            loss = self._loss(*self._inputs)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.clip:
                nn.utils.clip_grad_norm_(self._trained(), self.clip)
            if ours is not None:
                ours.apply()
            else:
                self.optimiser.step()
            self._captured_loss = loss.detach()
        self._graph.replay()  # capturing computes nothing: this is the step
        if ours is not None:
            ours.finish()
        return self._captured_loss.clone()

    def _replay(self, videos: Tensor, captions: Tensor) -> Tensor:
        assert self._inputs is not None  # noqa: S101 - the caller has checked
        assert self._captured_loss is not None  # noqa: S101
        self._inputs[0].copy_(videos, non_blocking=True)
        self._inputs[1].copy_(captions, non_blocking=True)
        ours = self.optimiser if isinstance(self.optimiser, RAdam) else None
        if ours is not None:
            ours.prepare()
        self._graph.replay()
        if ours is not None:
            ours.finish()
        return self._captured_loss.clone()

    def _trained(self) -> list[Tensor]:
        return [p for group in self.optimiser.param_groups for p in group["params"]]


def seed_step(seed: int, number: int, rank: int = 0) -> None:
    """Set torch's random numbers for one step: the same for the same seed, step and process."""
    state = np.random.SeedSequence([seed, number, rank, 104729]).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]) >> 1)


def set_lr(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Give every group `factor` times the learning rate that it began with."""
    for group in optimiser.param_groups:
        if "base_lr" not in group:  # read once: it may be on the device
            group["base_lr"] = float(group["lr"])
        value = group["base_lr"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(value)
        else:
            group["lr"] = value
