"""Does a small CLIP learn from raw video, plainly and under the heads of CLIP4Clip and TS2-Net?

    python studies/small_clip.py train --data DATA --out runs --seed 0 --device cuda
    python studies/small_clip.py loading --data DATA --out runs --device cuda
    python studies/small_clip.py table --runs runs --out results/small_clip

DATA holds `msvd` (videos, captions.json, splits.json), `msrvtt` (240 training videos), `coco` and `flickr8k`
(pictures). A small CLIP starts from random weights and learns from all of them, then each head continues from
it on the videos. The best epoch is chosen on MSVD's validation videos; test videos are only measured. `train`
also writes logits, for studies of normalisation. `loading` measures clips per second and how long the device
waits for data without a cache of decoded videos.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_clip_text import write_table

from wordreel.lab.models.checkpoint import load_video_text
from wordreel.lab.models.clip.config import Clip4ClipConfig
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.frames.frame_batches import VideoEncoder
from wordreel.lab.training.loop import pick_device, train
from wordreel.lab.training.measure import measure
from wordreel.lab.training.open_data import CaptionedVideos, Sources
from wordreel.lab.training.optimisers import TrainingPrecision
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.training_data import TrainingData, clip_tokens, prepare

PLAIN, HEADS = "small-clip", ("small-clip-mean", "small-clip-transformer", "small-clip-ts2net")
SHARE = 4.0  # of the videos, which have forty captions each
PER_VIDEO = 6  # captions of each test video whose logits are written
SPEED = ("seconds", "clips_per_second", "waiting_share")
BANK = 5_000  # training captions whose logits are written
SIZES = {
    "small-clip": ["model.backbone.size=128"],
    "clip4clip-mean-msvd": ["start.scratch=true", "model.backbone=clip-vit-b-32"],
    "clip4clip-mean-msvd, ViT-B/16": ["start.scratch=true", "model.backbone=clip-vit-b-16"],
}


def sources(data: Path, pictures: bool) -> list[CaptionedVideos]:
    videos = [
        CaptionedVideos(captions=str(data / "msvd"), split="train", share=SHARE),
        CaptionedVideos(captions=str(data / "msrvtt"), share=SHARE),
    ]
    more = [CaptionedVideos(captions=str(data / name), split="train") for name in ("coco", "flickr8k")]
    return [*videos, *more] if pictures else videos


def data_of(recipe: Recipe, data: Path, pictures: bool, tokenizer: Path | None) -> TrainingData:
    val = [CaptionedVideos(captions=str(data / "msvd"), split="val")]
    opened = Sources(sources(data, pictures), val).open(recipe)
    return prepare(recipe, opened.train, opened.val, folder=tokenizer)


def train_seed(options: argparse.Namespace) -> None:
    """Train the small CLIP and every head on it with one seed; write figures and logits of each."""
    folder = options.out / f"seed-{options.seed}"
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="small-clip-") as scratch:
        for name in (PLAIN, *HEADS):
            changes = [*options.set, f"run.seed={options.seed}"]
            if name != PLAIN:
                changes.append(f"start.model={scratch}/{PLAIN}")
            recipe = recipes.load(name, changes)
            data = data_of(recipe, options.data, name == PLAIN, options.tokenizer)
            result = train(recipe, data, Path(scratch) / name, device=options.device, on_epoch=_print)
            rows = result.history
            figures: dict[str, Any] = {
                "name": name,
                "title": recipe.title,
                "seed": options.seed,
                "epoch": result.epoch,
                "epochs": len(rows),
                "training": data.train.name,
                "videos": len(data.train),
                "seconds": round(result.seconds, 1),
                **result.loading,
                "first_epoch": {
                    key: rows[0][key] for key in ("seconds", "clips_per_second", "waiting_share")
                },
                "val": None if result.figures is None else result.figures.to_json(),
                "recipe": recipe.to_json(),
                "history": [
                    [row["epoch"], round(row["loss"], 4), row.get("t2v_geometric_mean")] for row in rows
                ],
            }
            figures |= score(recipe, result.best, data, options, folder / f"{name}.npz")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
            t2v, lasted = figures["test"]["t2v"], time.perf_counter() - started
            recall = " ".join(f"R@{key[1:]} {t2v[key]:.1f}" for key in ("r1", "r5", "r10"))
            print(f"{name} seed {options.seed}: {recall}, {_speed(figures)}, {lasted:.0f} s", flush=True)


def score(
    recipe: Recipe, best: Path, data: TrainingData, options: argparse.Namespace, out: Path
) -> dict[str, Any]:
    """Figures on the test videos with all captions, and logits of some captions and of a bank, in a file."""
    device = pick_device(options.device)
    module = load_video_text(best)[0].to(device)
    precision = TrainingPrecision(recipe.run.precision_on(device.type), device.type)
    encoder = VideoEncoder(recipe, device, precision)
    test = CaptionedVideos(captions=str(options.data / "msvd"), split="test").read(recipe)
    val = CaptionedVideos(captions=str(options.data / "msvd"), split="val").read(recipe)
    bank = CaptionedVideos(captions=str(options.data / "msvd"), split="train").read(recipe)
    assert data.tokenizer is not None  # noqa: S101 - `prepare` found one
    asked = {name: clip_tokens(pairs.texts, module.config, data.tokenizer) for name, pairs in
             {"test": test, "val": val, "bank": bank}.items()}  # fmt: skip
    drawn = np.sort(np.random.default_rng(0).permutation(len(asked["bank"]))[:BANK])
    videos = {"test": encoder.videos(module, test), "val": encoder.videos(module, val)}
    texts = {name: encoder.captions(module, ids) for name, ids in asked.items()}
    texts["bank"] = tuple(part[torch.from_numpy(drawn).to(part.device)] for part in texts["bank"])
    whole = {name: encoder.logits(module, texts[name], videos[name]) for name in ("test", "val")}
    kept = first_captions(test, PER_VIDEO)
    owners = {name: np.repeat(np.arange(len(pairs)), pairs.counts) for name, pairs in
              {"test": test, "val": val}.items()}  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        out,
        test=whole["test"][kept].astype(np.float16),
        test_owner=owners["test"][kept],
        val=whole["val"].astype(np.float16),
        val_owner=owners["val"],
        bank_test=encoder.logits(module, texts["bank"], videos["test"]).astype(np.float16),
        bank_val=encoder.logits(module, texts["bank"], videos["val"]).astype(np.float16),
        bank_captions=drawn,
        logit_scale=np.float32(module.clip.scale().item()),
    )
    encoder.close()
    return {
        "test": measure(whole["test"], test.counts).to_json(),
        "test_some": measure(whole["test"][kept], np.minimum(test.counts, PER_VIDEO)).to_json(),
        "test_videos": len(test),
        "test_captions": len(asked["test"]),
        "parameters": sum(p.numel() for p in module.parameters()),
    }


def first_captions(pairs: Pairs, each: int) -> np.ndarray[Any, Any]:
    """Numbers of the first captions of each video."""
    within = np.concatenate([np.arange(count) for count in pairs.counts])
    return np.flatnonzero(within < each)


def loading(options: argparse.Namespace) -> None:
    """Two epochs of MSVD's training videos by each size of model, every video decoded every time."""
    rows = []
    for name, changes in SIZES.items():
        chosen = name.partition(",")[0]
        changes = [*changes, "frames.cache_gib=0", "run.epochs=2", "run.validate_every=9", "run.select=last",
                   "data.captions=one", "run.batch=128", *options.set]  # fmt: skip
        recipe = recipes.load(chosen, changes)
        source = CaptionedVideos(captions=str(options.data / "msvd"), split="train")
        with tempfile.TemporaryDirectory(prefix="loading-") as scratch:
            data = prepare(recipe, source.read(recipe), folder=options.tokenizer)
            result = train(recipe, data, scratch, device=options.device)
        assert isinstance(recipe.model, Clip4ClipConfig)  # noqa: S101
        row = {key: result.history[-1][key] for key in SPEED}
        rows.append({"model": name, "size": recipe.model.backbone.vision.size, **row})
        print(rows[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "loading.json").write_text(json.dumps(rows, indent=1) + "\n")


def _speed(row: Any) -> str:
    return f"{row['clips_per_second']:.0f} clips/s, waiting {row['waiting_share']:.1%}"


def _print(row: dict[str, Any]) -> None:
    keys = ("epoch", "loss", "seconds", "clips_per_second", "waiting_share", "t2v_r1", "t2v_r10")
    print({key: round(row[key], 3) for key in keys if key in row}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("train", "loading"):
        one = verbs.add_parser(verb)
        one.add_argument("--data", type=Path, required=True)
        one.add_argument("--out", type=Path, required=True)
        one.add_argument("--seed", type=int, default=0)
        one.add_argument("--device", default="auto")
        one.add_argument("--tokenizer", type=Path, help="a tokenizer file, where no weight store has CLIP's")
        one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    table = verbs.add_parser("table")
    table.add_argument("--runs", type=Path, required=True)
    table.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.verb == "table":
        write_table(options.runs, options.out)
    else:
        {"train": train_seed, "loading": loading}[options.verb](options)


if __name__ == "__main__":
    main()
