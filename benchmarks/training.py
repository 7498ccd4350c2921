"""Steps in a second of training, against a plain rendering of the published loop, on data of MSR-VTT's shape.

    python benchmarks/training.py [--model mmt|ce] [--size tiny|small|full] [--steps 50] [--device cuda]

Three ways to train the same model on the same pairs, one after the other in one process:

- `plain`: as the published code does it. Every step builds its batch video by video from dictionaries of
  NumPy arrays; float32; attention spelled out; similarities expert by expert with weights `[texts, videos,
  experts]`; the recipe's own optimiser, parameter by parameter. It is given the step's pairs and token
  numbers for nothing.
- `float32`: our loop, features gathered on the device, nothing else changed.
- `fast`: our loop as one runs it: on a GPU bfloat16, compiled to CUDA graphs; on a CPU the
  same as `float32` unless --compile.

`full` is the recipe mmt-msrvtt-1k-a (7 experts of up to 30 rows, BERT-base, batch 32) or ce-msrvtt-full.
Before anything is timed, both sides must give the same loss for the same weights and rows. The ways are then
timed in turn, several times, and the median is reported with all rates, for a shared machine is noisy. Random
numbers stand for features; draws of rows and dropout differ between the ways, so later losses agree only
roughly. The result is JSON on standard output; `encode` are seconds for 1,000 videos and 1,000 captions.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace

import numpy as np
import torch

from wordreel.lab.datasets.types import Caption
from wordreel.lab.models.batch import ExpertFeatures, TokenBatch, similarity
from wordreel.lab.models.build import build
from wordreel.lab.models.collate import choose_rows
from wordreel.lab.models.config import CEConfig, MMTConfig, TransformerConfig
from wordreel.lab.models.layers import transformer as layers
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.distributed import World
from wordreel.lab.training.measure import embed_texts, embed_videos
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.session import Session
from wordreel.lab.training.training_data import TrainingData

CAPTIONS = 20


def recipe_of(model: str, size: str, steps: int) -> Recipe:
    made = recipes.load("mmt-msrvtt-1k-a" if model == "mmt" else "ce-msrvtt-full", ["start.text="])
    config = made.model
    assert isinstance(config, MMTConfig | CEConfig)
    if size != "full":
        wide = {"tiny": 8, "small": 2}[size]
        experts = tuple(replace(e, dim=max(16, e.dim // (4 * wide))) for e in config.experts)
        if isinstance(config, MMTConfig):
            network = TransformerConfig(2000, 768 // (2 * wide), 2, 4, 3072 // (2 * wide), 64)
            text = replace(config.text, network=network, dim=network.hidden)
            config = replace(
                config, experts=experts, text=text, dim=512 // (2 * wide), layers=2, inner=1536 // wide
            )
        elif isinstance(config, CEConfig):
            text = replace(config.text, dim=64, clusters=8)
            config = replace(config, experts=experts, text=text, dim=768 // (2 * wide))
    run = replace(
        made.run, epochs=1, steps=steps, validate_every=1, select="last", drop_last=True, save_minutes=0.0
    )
    return replace(made, model=config, run=run)


def synthetic(config: MMTConfig | CEConfig, videos: int) -> TrainingData:
    """Videos of up to 60 rows an expert, some experts missing; 20 captions each."""
    rng = np.random.default_rng(0)
    rows = {}
    for number, expert in enumerate(config.experts):
        single = isinstance(config, CEConfig) and expert.pool == "mean"
        counts = np.ones(videos, int) if single else rng.integers(5, 60, videos)
        if number:
            counts[rng.random(videos) < 0.15] = 0
        values = [rng.normal(size=(count, expert.dim)).astype(np.float32) for count in counts]
        rows[expert.name] = pack(values, [np.arange(count) * 0.9 for count in counts])
    told = tuple(tuple(Caption(f"{video} {n}") for n in range(CAPTIONS)) for video in range(videos))
    pairs = Pairs("synthetic", tuple(map(str, range(videos))), rows, told)
    lengths = rng.integers(6, 20, videos * CAPTIONS)
    if config.text.words == "vectors":
        words = pack([rng.normal(size=(n, config.text.dim)).astype(np.float16) for n in lengths])
    else:
        assert config.text.network is not None
        words = pack([rng.integers(1, config.text.network.vocabulary, n) for n in lengths])
    return TrainingData(pairs, words)


# The plain rendering


def plain_attention(q, k, v, attn_mask=None, dropout_p=0.0):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + attn_mask
    return torch.nn.functional.dropout(scores.softmax(dim=-1), dropout_p) @ v


def rows_and_times(packed: Packed, video: int) -> tuple[np.ndarray, np.ndarray]:
    assert packed.times is not None
    span = slice(packed.starts[video], packed.starts[video] + packed.counts[video])
    return packed.values[span], packed.times[span]


class PlainData:
    """What a dataset class of the published kind holds, and the collation of its workers."""

    def __init__(self, material: TrainingData, config: MMTConfig | CEConfig) -> None:
        self.config = config
        pairs, words = material.train, material.train_words
        assert isinstance(words, Packed)
        self.videos = [
            {name: rows_and_times(packed, video) for name, packed in pairs.rows.items()}
            for video in range(len(pairs))
        ]
        self.words = [words.values[a : a + n] for a, n in zip(words.starts, words.counts, strict=True)]

    def collate(self, videos, captions, rng=None):
        config, size = self.config, len(videos)
        batch = {}
        for expert in config.experts:
            most = expert.max_tokens or 1
            values = np.zeros((size, most, expert.dim), np.float32)
            mask = np.zeros((size, most), bool)
            times = np.full((size, most), np.nan, np.float32)
            pooled = np.zeros((size, expert.dim), np.float32)
            for place, video in enumerate(videos):
                rows, clock = self.videos[video][expert.name]
                if not len(rows):
                    continue
                pooled[place] = rows.max(axis=0)
                kept = np.arange(min(len(rows), most))
                if isinstance(config, MMTConfig) and len(rows) > most:
                    kept = choose_rows(len(rows), most, rng)
                values[place, : len(kept)], mask[place, : len(kept)] = rows[kept], True
                times[place, : len(kept)] = clock[kept]
            parts = [torch.from_numpy(x) for x in (values, mask, times)]
            batch[expert.name] = ExpertFeatures(
                *parts, torch.from_numpy(pooled) if isinstance(config, MMTConfig) else None
            )
        most = config.text.max_tokens
        like = self.words[0]
        tokens = np.zeros((size, most, *like.shape[1:]), np.float32 if like.dtype.kind == "f" else np.int64)
        there = np.zeros((size, most), bool)
        for place, caption in enumerate(captions):
            words = self.words[caption][:most]
            tokens[place, : len(words)], there[place, : len(words)] = words, True
        return batch, TokenBatch(torch.from_numpy(tokens), torch.from_numpy(there))


def plain_similarity(queries, videos):
    """Weights for every text, video and expert; then expert by expert."""
    weights = queries.weights[:, None, :] * videos.available[None].float()  # [texts, videos, experts]
    weights = weights / weights.sum(dim=2, keepdim=True).clamp(min=1e-5)
    sims = 0
    for expert in range(weights.shape[2]):
        sims = sims + weights[:, :, expert] * (queries.vectors[:, expert] @ videos.vectors[:, expert].T)
    return sims


def plain_loss(sims, margin):
    n = len(sims)
    own = sims.diagonal()[:, None].expand(n, n).reshape(-1, 1)
    terms = torch.cat([own, own])
    others = torch.cat([sims.reshape(-1, 1), sims.T.reshape(-1, 1)])
    found = torch.relu(margin - (terms - others))
    kept = (~torch.eye(n, dtype=torch.bool)).flatten().nonzero().flatten()
    kept = torch.cat([kept, kept + n * n]).to(sims.device)
    return found[kept].mean()


class PlainRanger:
    """RAdam and Lookahead as published: a Python loop over parameters."""

    def __init__(self, parameters, rate, decay, betas=(0.95, 0.999), eps=1e-5, every=6, share=0.5):
        self.parameters, self.rate, self.decay, self.betas, self.eps = (
            list(parameters),
            rate,
            decay,
            betas,
            eps,
        )
        self.every, self.share, self.steps = every, share, 0
        self.mean = [torch.zeros_like(p) for p in self.parameters]
        self.square = [torch.zeros_like(p) for p in self.parameters]
        self.slow = [p.detach().clone() for p in self.parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.steps += 1
        beta1, beta2 = self.betas
        size, adapted = step_size(self.steps, self.rate, self.betas)
        for p, m, v, slow in zip(self.parameters, self.mean, self.square, self.slow, strict=True):
            v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
            m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
            p.add_(p, alpha=-self.rate * self.decay)
            if adapted:
                p.addcdiv_(m, v.sqrt().add_(self.eps), value=-size)
            else:
                p.add_(m, alpha=-size)
            if self.steps % self.every == 0:
                slow.add_(p - slow, alpha=self.share)
                p.copy_(slow)


def step_size(step, lr, betas):
    """The factor of m (over √v + ε if adapted) in step 1, 2, …, and whether the step is adapted."""
    beta1, beta2 = betas
    longest, power, bias = 2 / (1 - beta2) - 1, beta2**step, 1 - beta1**step
    length = longest - 2 * step * power / (1 - power)
    if length <= 5:
        return lr / bias, False
    rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return lr * math.sqrt(rectified * (1 - power)) / bias, True


def plain_optimiser(recipe, module):
    parameters = [p for p in module.parameters() if p.requires_grad]
    if recipe.optimiser.kind == "ranger":
        return PlainRanger(parameters, recipe.optimiser.lr, recipe.optimiser.weight_decay)
    assert recipe.optimiser.kind == "adam"
    return torch.optim.Adam(parameters, recipe.optimiser.lr, foreach=False, fused=False)


def moved(batch, tokens, device):
    batch = {
        name: ExpertFeatures(*(None if x is None else x.to(device) for x in part))
        for name, part in batch.items()
    }
    return batch, TokenBatch(*(x.to(device) for x in tokens))


def run_plain(recipe, data, batches, device, warm):
    torch.manual_seed(recipe.run.seed)
    module = build(recipe.model).to(device).train()
    optimiser = plain_optimiser(recipe, module)
    rng = np.random.default_rng(0)
    losses, begun = [], 0.0
    fused = layers.scaled_dot_product_attention
    layers.scaled_dot_product_attention = plain_attention
    try:
        for number, (videos, captions) in enumerate(batches):
            if number == warm:
                synchronise(device)
                begun = time.perf_counter()
            shown, asked = module(*moved(*data.collate(videos, captions, rng), device))
            loss = plain_loss(plain_similarity(asked, shown), recipe.loss.margin)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())  # as published: every step is waited for
        synchronise(device)
    finally:
        layers.scaled_dot_product_attention = fused
    return (len(batches) - warm) / (time.perf_counter() - begun), losses


def same_loss(recipe, material, data, batch, device):
    """The loss of one batch by both sides, without dropout or draws: they must be one number."""
    session = Session(recipe, material, device, World())
    module = session.module.eval()
    videos, captions = batch
    with torch.no_grad():
        fused = layers.scaled_dot_product_attention
        layers.scaled_dot_product_attention = plain_attention
        try:
            shown, asked = module(*moved(*data.collate(videos, captions), device))
        finally:
            layers.scaled_dot_product_attention = fused
        plain = float(plain_loss(plain_similarity(asked, shown), recipe.loss.margin))
        features = session.source.features.batch(torch.from_numpy(videos).to(device))
        shown, asked = module(features, session.source.texts.batch(torch.from_numpy(captions).to(device)))
        ours = float(session.source.loss_function(similarity(asked, shown), None))
    assert math.isclose(plain, ours, rel_tol=1e-4), f"the two sides disagree: {plain} and {ours}"
    return {"plain": plain, "ours": ours}


# Ours


def run_ours(recipe, material, device, warm):
    session = Session(recipe, material, device, World())
    steps = session.steps_of_epoch()
    losses, begun = [], 0.0
    for number, batch in enumerate(session.batches(0, 0)):
        if number == warm:
            synchronise(device)
            begun = time.perf_counter()
        losses.append(session.step(batch, number, 1.0))
    synchronise(device)
    rate = (steps - warm) / (time.perf_counter() - begun)
    return rate, torch.stack(losses).tolist(), session


def encode(session, device):
    """Seconds to embed 1,000 videos and 1,000 captions, features held."""
    session.module.eval()
    texts, features = session.source.texts, session.source.features
    hundreds = type(features).__new__(type(features))
    hundreds.__dict__ |= {**features.__dict__, "_count": 1000}
    thousand = type(texts).__new__(type(texts))
    thousand.__dict__ |= {**texts.__dict__, "host_counts": texts.host_counts[:1000]}
    found = {}
    for name, work in (
        ("videos", lambda: embed_videos(session.module, hundreds, session.source.precision)),
        ("captions", lambda: embed_texts(session.module, thousand, session.source.precision)),
    ):
        work()
        synchronise(device)
        begun = time.perf_counter()
        work()
        synchronise(device)
        found[name] = time.perf_counter() - begun
    return found


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=("mmt", "ce"), default="mmt")
    parser.add_argument("--size", choices=("tiny", "small", "full"), default="small")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warm", type=int, default=10, help="steps that are not timed")
    parser.add_argument("--videos", type=int, default=2000, help="at least 1000")
    parser.add_argument("--repeat", type=int, default=3, help="times each way is timed, in turn")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true", help="compile on a CPU too")
    asked = parser.parse_args()
    device = torch.device(asked.device)
    steps = asked.steps + asked.warm
    recipe = recipe_of(asked.model, asked.size, steps)
    config = recipe.model
    assert isinstance(config, MMTConfig | CEConfig)
    material = synthetic(config, asked.videos)
    if asked.videos < 1000:
        parser.error("--videos must be at least 1000: so many are encoded")
    data = PlainData(material, config)
    batches = BatchSampler(material.train, recipe.data, recipe.run).epoch(0)
    first = same_loss(recipe, material, data, batches[0], device)
    quick = device.type == "cuda"
    run = replace(recipe.run, precision="bfloat16" if quick else "float32", compile=quick or asked.compile)
    ways = {"float32": recipe}
    if quick or asked.compile:
        ways["fast"] = replace(recipe, run=run)
    rates: dict[str, list[float]] = {"plain": [], **{way: [] for way in ways}}
    losses: dict[str, list[float]] = {}
    for _ in range(asked.repeat):
        rate, losses["plain"] = run_plain(recipe, data, batches, device, asked.warm)
        rates["plain"].append(rate)
        for way, made in ways.items():
            rate, losses[way], session = run_ours(made, material, device, asked.warm)
            rates[way].append(rate)
    middle = {way: float(np.median(found)) for way, found in rates.items()}
    last = slice(-max(1, asked.steps // 4), None)
    result = {
        "model": asked.model,
        "size": asked.size,
        "device": torch.cuda.get_device_name(device) if quick else f"cpu, {torch.get_num_threads()} threads",
        "parameters": sum(p.numel() for p in session.module.parameters()),
        "batch": recipe.run.batch,
        "optimiser": recipe.optimiser.kind,
        "first_loss": first,
        "steps_per_second": middle,
        "all_rates": rates,
        "times_plain": {way: rate / middle["plain"] for way, rate in middle.items() if way != "plain"},
        "held_on_device": session.source.features.storage_device == device,
        "loss_at_the_end": {way: float(np.mean(found[last])) for way, found in losses.items()},
        "encode_seconds": encode(session, device),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
