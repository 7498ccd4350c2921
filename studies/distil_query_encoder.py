"""Train the small encoder of queries: one network of few layers for the vectors of the default model's two.

    python studies/distil_query_encoder.py pack --data DATA [--texts LINES.txt ...] --out FOLDER
    python studies/distil_query_encoder.py train FOLDER --layers 3 [--device cuda] --out TRAINED
    python studies/distil_query_encoder.py export TRAINED --out src/wordreel/models/reel/queries.safetensors

`pack` writes token ids and the weights of both teachers (the sentence encoder, and the one that the default
model trained further), so that training needs neither. The texts are the training captions, single words and
short pieces of them, the classes that experts know, and the lines of other files; the captions of MSVD's
validation videos, the everyday queries and every hundredth line of the other files choose.

Both heads learn the teachers' vectors and what is made of them: the default model's embedding, the classes
that the words speak of, and the similarities inside a batch.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

MAX_TOKENS = 40
HELD_OUT = 100  # of the other files' lines, one in so many
TEACHERS = ("bridge", "reel")
CLASSES = "classes"
TEMPERATURE = 0.08  # of the bridge


def pack(data: Path, others: list[Path], out: Path) -> None:
    from wordreel.lab.models.text.minilm import minilm_weights
    from wordreel.models.reel import checkpoint
    from wordreel.nets.sentences import SentenceEncoder
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    encoder = SentenceEncoder(store)
    training, choosing = texts_of(data, others)
    out.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {}
    for name, texts in {"train": training, CLASSES: class_texts(), **choosing}.items():
        ids = encoder.pieces(texts, MAX_TOKENS)
        arrays[f"{name}/ids"] = np.concatenate([np.array(one, np.uint16) for one in ids])
        arrays[f"{name}/counts"] = np.array([len(one) for one in ids], np.uint8)
        progress(f"{name}: {len(texts)} texts")
    np.savez_compressed(out / "texts.npz", **arrays)
    reel = checkpoint.load()
    tower = {f"tower.{name}": array for name, array in reel.tower.items() if name.startswith("caption.")}
    for name, weights in {"bridge": minilm_weights(store), "reel": {**reel.encoder, **tower}}.items():
        np.savez(out / f"{name}.npz", **{key: array.astype(np.float16) for key, array in weights.items()})
    (out / "about.json").write_text(json.dumps({"stands_for": [reel.digest]}))


def texts_of(data: Path, others: list[Path]) -> tuple[list[str], dict[str, list[str]]]:
    """Texts to train on, and those that choose, by kind."""
    from common import captions_of
    from parts import parts_of

    from wordreel.banks import everyday

    rng = random.Random(0)  # noqa: S311 - draws texts
    captions: set[str] = set()
    for name, parts in parts_of(data).items():
        kept = set(parts["train"])
        for told in captions_of(data, name).values():
            captions |= {text.strip() for video, texts in told.items() if video in kept for text in texts}
    lines = [line for path in others for line in path.read_text(encoding="utf-8").splitlines() if line]
    taught = [line for number, line in enumerate(lines) if number % HELD_OUT]
    sentences = sorted(captions) + taught
    words = sorted({word for text in sentences for word in re.findall(r"[a-z]{3,}", text.lower())})
    made = [piece_of(rng.choice(sentences), rng) for _ in range(200_000)]
    made += [" ".join(rng.sample(words, rng.randint(2, 3))) for _ in range(60_000)]
    training = list(dict.fromkeys([*sentences, *words, *made, *class_texts()]))
    msvd = captions_of(data, "msvd")["val"]
    choosing = {
        "captions": sorted({text for texts in msvd.values() for text in texts})[:4000],
        "everyday": everyday.queries(),
        "lines": lines[::HELD_OUT],
    }
    return training, choosing


def class_texts() -> list[str]:
    """The classes that the experts for pictures know, in the bridge's words."""
    from wordreel.experts import registry
    from wordreel.models.bridge import wordings_of
    from wordreel.weights.store import WeightStore

    texts = []
    for kind in ("appearance", "motion"):
        for wording in wordings_of(kind, registry.recogniser(kind, WeightStore()).names):
            texts += wording
    return texts


def piece_of(text: str, rng: random.Random) -> str:
    """Some neighbouring words of a text, as people type them."""
    words = text.lower().split()
    count = rng.randint(1, min(6, len(words)))
    start = rng.randint(0, len(words) - count)
    return " ".join(words[start : start + count])


class Texts:
    """Padded token ids of one kind of texts, and both teachers' vectors `[texts, 2, 384]`."""

    def __init__(self, pack: Any, name: str, device: str) -> None:
        import torch

        ids, counts = (pack[f"{name}/{part}"].astype(np.int64) for part in ("ids", "counts"))
        starts = np.cumsum(counts) - counts
        padded = np.zeros((len(counts), MAX_TOKENS), np.int64)
        padded[np.repeat(np.arange(len(counts)), counts), np.arange(len(ids)) - np.repeat(starts, counts)] = (
            ids
        )
        self.ids, self.counts = torch.from_numpy(padded).to(device), torch.from_numpy(counts).to(device)
        self.targets: Any = None

    def tokens(self, some: Any) -> tuple[Any, Any]:
        """Ids and mask of some of them, no wider than the longest."""
        import torch

        counts = self.counts[some]
        most = int(counts.max())
        return self.ids[some][:, :most], torch.arange(most, device=counts.device) < counts[:, None]

    def __len__(self) -> int:
        return len(self.ids)

    def slices(self, size: int = 4096) -> list[slice]:
        return [slice(start, start + size) for start in range(0, len(self), size)]


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def pooled(network: Any, ids: Any, mask: Any) -> Any:
    """The mean over a text's tokens."""
    weight = mask[..., None].float()
    return (network(ids, mask) * weight).sum(1) / weight.sum(1)


def make_student(bridge: dict[str, Any], layers: int, device: str) -> Any:
    """Some of the sentence encoder's layers, the last one too, and a matrix for each teacher."""
    import torch

    from wordreel.lab.models.config import MINILM
    from wordreel.lab.models.text.bert import Bert

    class Student(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = Bert(replace(MINILM, layers=layers, dropout=0.0))
            self.heads = torch.nn.ModuleDict({name: torch.nn.Linear(384, 384) for name in TEACHERS})

        def forward(self, ids: Any, mask: Any) -> Any:
            mean = pooled(self.network, ids, mask)
            both = [self.heads[name](mean).float() for name in TEACHERS]
            return torch.nn.functional.normalize(torch.stack(both, 1), dim=-1)

    student = Student()
    weights = {name: array for name, array in bridge.items() if not name.startswith("encoder.layer.")}
    for place in range(layers):
        at = f"encoder.layer.{round((place + 1) * MINILM.layers / layers) - 1}."
        for name, array in bridge.items():
            if name.startswith(at):
                weights[f"encoder.layer.{place}.{name.removeprefix(at)}"] = array
    student.network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    student.network.embeddings.requires_grad_(False)
    student.network.pooler.requires_grad_(False)
    for head in student.heads.values():
        torch.nn.init.eye_(head.weight)
        torch.nn.init.zeros_(head.bias)
    return student.to(device)


def train(folder: Path, layers: int, epochs: int, batch: int, rate: float, device: str, out: Path) -> None:
    import torch
    from safetensors.numpy import save_file

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    bridge, tuned = (
        {name: array.astype(np.float32) for name, array in np.load(folder / f"{teacher}.npz").items()}
        for teacher in TEACHERS
    )
    tower = {name.removeprefix("tower."): torch.from_numpy(tuned.pop(name)).to(device)
             for name in list(tuned) if name.startswith("tower.")}  # fmt: skip
    packs = encoded_by_teachers(np.load(folder / "texts.npz"), bridge, tuned, device)
    texts, classes = packs.pop("train"), packs.pop(CLASSES).targets[:, 0].float()
    student = make_student(bridge, layers, device)
    learned = [value for value in student.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01, fused=device == "cuda")
    steps = epochs * (len(texts) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.05)
    began = time.time()
    for epoch in range(epochs):
        order = torch.randperm(len(texts), device=device)
        for start in range(0, len(order) - batch + 1, batch):
            some = order[start : start + batch]
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                made = student(*texts.tokens(some))
            loss = difference(made, texts.targets[some].float(), classes, tower)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned, 1.0)
            optimiser.step()
            schedule.step()
        progress(f"epoch {epoch + 1}: {cosines(student, packs)}, {time.time() - began:.0f} s")
    arrays = {
        name.removeprefix("network."): value.float().cpu().numpy()
        for name, value in student.state_dict().items()
        if name.startswith(("network.encoder.", "heads."))
    }
    about = {
        "layers": layers, "epochs": epochs, "batch": batch, "rate": rate, "texts": len(texts),
        "cosine": cosines(student, packs), **json.loads((folder / "about.json").read_text()),
    }  # fmt: skip
    half = {name: array.astype(np.float16) for name, array in arrays.items()}
    save_file(half, out, metadata={"queries": json.dumps(about)})
    print(json.dumps(about))


def export(trained: Path, out: Path) -> None:
    """Write the file that ships, for the sentence encoder of the model that ships."""
    from safetensors.numpy import load_file

    from wordreel.models.reel import checkpoint, query_encoder

    with query_encoder.opened(trained) as (_, card):
        teacher = checkpoint.load()
        if card["stands_for"] != [teacher.digest]:
            raise SystemExit("the default model is no longer the one that it learned from: train it again")
    arrays = {name: array.astype(np.float32) for name, array in load_file(trained).items()}
    query_encoder.export(out, arrays, card, teacher)


def encoded_by_teachers(
    pack: Any, bridge: dict[str, Any], tuned: dict[str, Any], device: str
) -> dict[str, Texts]:
    import torch
    from torch.nn.functional import normalize

    from wordreel.lab.models.text.minilm import minilm_network

    packs = {name: Texts(pack, name, device) for name in sorted({name.split("/")[0] for name in pack})}
    teachers = [minilm_network(weights=weights).to(device) for weights in (bridge, {**bridge, **tuned})]
    with torch.no_grad():
        for texts in packs.values():
            both = [[normalize(pooled(t, *texts.tokens(some)), dim=-1) for t in teachers]
                    for some in texts.slices()]  # fmt: skip
            texts.targets = torch.cat([torch.stack(pair, 1).half() for pair in both])
    progress("encoded by both teachers")
    return packs


def difference(made: Any, truth: Any, classes: Any, tower: dict[str, Any]) -> Any:
    """How far a student's vectors `[texts, 2, 384]` are from the teachers'.

    1 − cosine, of the vectors and of what the default model makes of the second; the similarities inside a
    batch; and, of the first, the classes that the words speak of.
    """
    from torch.nn.functional import cross_entropy

    loss = (1 - (made * truth).sum(-1)).mean()
    loss = loss + (1 - (embedded(made[:, 1], tower) * embedded(truth[:, 1], tower)).sum(-1)).mean()
    for head in range(len(TEACHERS)):
        alike = made[:, head] @ made[:, head].T - truth[:, head] @ truth[:, head].T
        loss = loss + 2 * alike.square().mean()
    said, meant = (x[:, 0] @ classes.T / TEMPERATURE for x in (made, truth))
    return loss + 0.2 * (cross_entropy(said, meant.softmax(-1)) - cross_entropy(meant, meant.softmax(-1)))


def embedded(sentences: Any, tower: dict[str, Any]) -> Any:
    """What `models/reel/runtime.py: embed_sentences` makes of sentence vectors."""
    from torch.nn.functional import gelu, layer_norm, linear, normalize

    def layer(name: str, x: Any) -> Any:
        return linear(x, tower[f"caption.{name}.weight"], tower[f"caption.{name}.bias"])

    x = layer_norm(sentences, (384,), tower["caption.norm.weight"], tower["caption.norm.bias"])
    return normalize(layer("straight", x) + layer("last", gelu(layer("first", x))), dim=-1)


def cosines(student: Any, packs: dict[str, Texts]) -> dict[str, list[float]]:
    """The mean cosine with each teacher, by kind of texts."""
    import torch

    figures = {}
    with torch.no_grad():
        for name, texts in packs.items():
            made = torch.cat([student(*texts.tokens(some)) for some in texts.slices()])
            figures[name] = [round(v, 4) for v in (made * texts.targets.float()).sum(-1).mean(0).tolist()]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("--data", type=Path, required=True)
    packing.add_argument("--texts", type=Path, nargs="*", default=[])
    packing.add_argument("--out", type=Path, required=True)
    training = commands.add_parser("train")
    training.add_argument("folder", type=Path)
    training.add_argument("--layers", type=int, default=3)
    training.add_argument("--epochs", type=int, default=20)
    training.add_argument("--batch", type=int, default=1024)
    training.add_argument("--rate", type=float, default=4e-4)
    training.add_argument("--device", default="cpu")
    training.add_argument("--out", type=Path, required=True)
    exporting = commands.add_parser("export")
    exporting.add_argument("trained", type=Path)
    exporting.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "export":
        export(given.trained, given.out)
    elif given.command == "pack":
        pack(given.data, given.texts, given.out)
    else:
        train(given.folder, given.layers, given.epochs, given.batch, given.rate, given.device, given.out)


if __name__ == "__main__":
    main()
