"""The loop: contrastive training of both sides, with every token and caption held on the device.

Loss: cross entropy of sharpened cosines, both ways, against a target that is mostly the pair itself and a
little the items whose captions mean nearly the same (by the sentence encoder before training), since in a
batch of captions many say the same thing. Two captions of one item never count against each other. A student
learns from its teachers' mean cosines too (`distilled`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from wordreel.evaluate.ranks import Recall, ranks_of, recall
from wordreel.models.reel.checkpoint import Checkpoint
from wordreel.models.reel.shape import SEEN
from wordreel.training.reel.captions import Captions, cut_short, pooled
from wordreel.training.reel.material import SPLITS, Material
from wordreel.training.reel.module import Tower
from wordreel.training.reel.ready import Ready
from wordreel.training.reel.settings import Settings

FAR = -1e4
AT_ONCE = 512  # items embedded together
SEEDS_APART = 1000  # of a model and its teachers

Report = Callable[[dict[str, Any]], None]


@dataclass
class Fitted:
    """A trained pair of sides and how well it does on validation, by source."""

    checkpoint: Checkpoint
    validation: dict[str, Recall]


@dataclass(frozen=True, eq=False)
class Taught:
    """What a teacher makes of all captions and items: unit vectors `[texts, dim]` and `[items, dim]`."""

    texts: Tensor
    items: Tensor


def fit(
    material: Material,
    captions: Captions,
    settings: Settings,
    device: str = "cpu",
    report: Report | None = None,
) -> Fitted:
    """Train on the items of split `train`, after the teachers if there are any; measure on those of `val`."""
    ready = Ready.of(material, captions, torch.device(device))
    teachers = []
    for number in range(settings.teachers):
        seed = settings.seed + SEEDS_APART * (number + 1)
        alone = replace(settings, teachers=0, seed=seed)
        said = _about(report, f"teacher {number + 1} of {settings.teachers}")
        teachers.append(_fit(ready, alone, said, ()).taught())
    run = _fit(ready, settings, _about(report, "the model"), teachers)
    return Fitted(run.checkpoint(), run.validate())


def _about(report: Report | None, what: str) -> Report | None:
    return None if report is None else lambda now: report({"what": what, **now})


def _fit(ready: Ready, settings: Settings, report: Report | None, teachers: Sequence[Taught]) -> _Run:
    torch.manual_seed(settings.seed)
    run = _Run(ready, settings, teachers)
    started = time.monotonic()
    for epoch in range(settings.epochs):
        loss = run.epoch(epoch)
        if report:
            report(
                {
                    "epoch": epoch + 1,
                    "epochs": settings.epochs,
                    "loss": loss,
                    "seconds": time.monotonic() - started,
                }
            )
    return run


class _Run:
    def __init__(self, ready: Ready, settings: Settings, teachers: Sequence[Taught]) -> None:
        self.ready, self.settings, self.teachers = ready, settings, teachers
        self.material, self.captions, self.plain = ready.material, ready.captions, ready.plain
        self.device = device = ready.device
        self.tower = Tower(settings).to(device)
        self.encoder = self.captions.trainable() if settings.encoder_rate else None
        material = self.material
        train = np.flatnonzero(material.split == SPLITS.index("train"))
        order = np.argsort(material.owner, kind="stable")
        counts = np.bincount(material.owner, minlength=len(material))
        self.first = torch.from_numpy(np.cumsum(counts) - counts).to(device)
        self.many = torch.from_numpy(counts).to(device)
        self.order = torch.from_numpy(order).to(device)
        pool = [np.repeat(train, [settings.repeat.get(material.names[s], 1) for s in material.source[train]])]
        self.pool = torch.from_numpy(np.concatenate(pool)).to(device)
        self.steps = max(len(self.pool) // settings.batch, 1)
        self.optimiser = torch.optim.AdamW(
            self._groups(), lr=settings.rate, betas=(0.9, 0.98), fused=device.type == "cuda"
        )
        self.rates = [group["lr"] for group in self.optimiser.param_groups]
        self.embed = _compiled() if device.type == "cuda" else _embed

    def _groups(self) -> list[dict[str, Any]]:
        settings = self.settings
        wide = [p for p in self.tower.parameters() if p.ndim > 1]
        flat = [p for p in self.tower.parameters() if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": wide, "weight_decay": settings.decay},
            {"params": flat, "weight_decay": 0.0},
        ]
        if self.encoder is not None:
            layers = [p for name, p in self.encoder.named_parameters() if name.startswith("encoder.")]
            groups.append(
                {"params": layers, "lr": settings.encoder_rate, "weight_decay": settings.encoder_decay}
            )
        return groups

    def epoch(self, number: int) -> float:
        self.tower.train()
        batch = min(self.settings.batch, len(self.pool))
        shuffled = self.pool[torch.randperm(len(self.pool), device=self.device)]
        total = torch.zeros((), device=self.device)
        for step in range(self.steps):
            self._set_rate((number * self.steps + step) / (self.settings.epochs * self.steps))
            total += self._step(shuffled[step * batch : (step + 1) * batch])
        return float(total) / self.steps

    def _set_rate(self, done: float) -> None:
        """Warm up in a straight line, then follow a cosine down to nothing."""
        factor = (
            min(1.0, (done + 1e-9) / max(self.settings.warmup, 1e-9)) * (1 + math.cos(math.pi * done)) / 2
        )
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * max(factor, 1e-4)

    def _step(self, items: Tensor) -> Tensor:
        count = self.settings.captions
        asked = items.repeat(count)
        draws = torch.rand(len(asked), device=self.device)
        chosen = self.order[self.first[asked] + (draws * self.many[asked]).long()]
        words = None
        if self.encoder is not None:
            words = cut_short(*self.captions.words(chosen), self.settings.short)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            text, video = self.embed(self.tower, self.encoder, *self._shown(items), words, self.plain[chosen])
        scores = self.tower.similarities(text, video)
        own = torch.arange(len(items), device=self.device)
        mine = own.repeat(count)[:, None] == own
        others = (asked[:, None] == items) & ~mine  # the item again: neither right nor wrong
        scores = scores.masked_fill(others, FAR)
        soft = self.settings.soft
        said = self.plain[chosen].chunk(count)  # one caption per item each
        alike = torch.cat([some @ some.T for some in said]) / self.settings.soft_temperature
        target = (1 - soft) * mine + soft * F.softmax(alike.masked_fill(others, FAR), dim=1)
        loss = -(target * F.log_softmax(scores, 1)).sum(1).mean()
        for some, right in zip(scores.chunk(count), target.chunk(count), strict=True):
            loss = loss - (right * F.log_softmax(some.T, 1)).sum(1).mean() / count
        if self.teachers:
            cosines = [teacher.texts[chosen] @ teacher.items[items].T for teacher in self.teachers]
            taught = torch.stack(cosines).float().mean(dim=0)
            told = distilled(text @ video.T, taught, others, count, self.settings.taught_temperature)
            loss = (1 - self.settings.taught) * loss + self.settings.taught * told
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.tower.parameters(), self.settings.clip)
        self.optimiser.step()
        return loss.detach()

    def _shown(self, items: Tensor, training: bool = True) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The tokens of some items; in training some stretches and experts are hidden."""
        tokens, kept = {}, {}
        for seen in SEEN:
            there = self.ready.there[seen.name][items]
            if training:
                left = there & (torch.rand(there.shape, device=self.device) >= self.settings.token_drop)
                there = torch.where(left.any(dim=1, keepdim=True), left, there)
                if seen.name != "appearance":
                    stays = torch.rand(len(items), 1, device=self.device) >= self.settings.expert_drop
                    there = there & stays
            tokens[seen.name], kept[seen.name] = self.ready.tokens[seen.name][items], there
        return tokens, kept

    @torch.no_grad()
    def validate(self, split: str = "val") -> dict[str, Recall]:
        """Recall of the captions of a split, source by source; other sources do not compete."""
        self.tower.eval()
        network = self.encoder or self.captions.network
        found = {}
        for number, name in enumerate(self.material.names):
            here = (self.material.split == SPLITS.index(split)) & (self.material.source == number)
            if not here.any():
                continue
            items = torch.from_numpy(np.flatnonzero(here)).to(self.device)
            video = self.tower.video(*self._shown(items, training=False))
            asked = np.flatnonzero(here[self.material.owner])
            place = np.cumsum(here) - 1
            text = self.tower.text(self.captions.sentences(network, torch.from_numpy(asked).to(self.device)))
            scores = (text @ video.T).float().cpu().numpy()
            found[name] = recall(ranks_of(scores, place[self.material.owner[asked]]))
        return found

    @torch.no_grad()
    def taught(self) -> Taught:
        """What this model would teach."""
        self.tower.eval()
        items = torch.arange(len(self.material), device=self.device)
        videos = [
            self.tower.video(*self._shown(some, training=False)) for some in torch.split(items, AT_ONCE)
        ]
        texts = self.tower.text(self.captions.sentences(self.encoder or self.captions.network))
        return Taught(texts.half(), torch.cat(videos).half())

    def checkpoint(self) -> Checkpoint:
        names = {name: p.detach().float().cpu().numpy() for name, p in self.tower.named_parameters()}
        names.pop("sharpness")
        layers = {}
        if self.encoder is not None:
            layers = {
                name: p.detach().float().cpu().numpy()
                for name, p in self.encoder.named_parameters()
                if name.startswith("encoder.")
            }
        return Checkpoint(
            names, layers, self.ready.scale, {"settings": asdict(self.settings), "data": self.material.digest}
        )


def _embed(
    tower: Tower,
    encoder: Any,
    tokens: dict[str, Tensor],
    kept: dict[str, Tensor],
    words: tuple[Tensor, Tensor] | None,
    sentences: Tensor,
) -> tuple[Tensor, Tensor]:
    """Unit vectors of captions and items; `sentences` are the captions' where no encoder is trained."""
    if encoder is not None and words is not None:
        sentences = pooled(encoder, *words)
    return tower.text(sentences), tower.video(tokens, kept)


@cache
def _compiled() -> Callable[..., tuple[Tensor, Tensor]]:
    """Compiled once for all models of one shape: on a GPU the small kernels' starts are most of a step."""
    return torch.compile(_embed)


def distilled(cosines: Tensor, taught: Tensor, hidden: Tensor, count: int, temperature: float) -> Tensor:
    """KL(teachers ‖ model) of the softmax of cosines `[count · items, items]`, captions to items and back.

    Captions come in `count` sets of one per item; the way back looks at one set at a time. What is `hidden`
    takes no part.
    """
    ours, theirs = (x.masked_fill(hidden, FAR * temperature) / temperature for x in (cosines, taught))
    loss = _divergence(ours, theirs)
    for some, right in zip(ours.chunk(count), theirs.chunk(count), strict=True):
        loss = loss + _divergence(some.T, right.T) / count
    return loss


def _divergence(ours: Tensor, theirs: Tensor) -> Tensor:
    return F.kl_div(F.log_softmax(ours, 1), F.log_softmax(theirs, 1), log_target=True, reduction="batchmean")
