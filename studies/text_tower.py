"""Train the text tower and the adapter of the default model.

    python studies/text_tower.py prepare coco.lib --pack PACKS/coco.npz
    python studies/text_tower.py train --data DATA --packs PACKS --out tower.pt --steps 1200 --seed 0
    python studies/text_tower.py export tower.pt --out src/wordreel/models/joint

`prepare` takes what the eyes saw from a library (of flickr8k, coco, msvd, msrvtt, or further COCO pictures as
`coco-NAME`); `train` prints recall on what it never saw; `export` writes the files that ship. `--minutes`
ends a training by the clock, its learning rate with it. `--translations N` teaches N of them in a step.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from tower_export import export
from tower_material import load, prepare, translations
from tower_training import Settings, Tower, recall, train

from wordreel.lab.models.text.pretrained import minilm_network
from wordreel.runtime.store import WeightStore


def open_tokenizer(store: WeightStore) -> Any:
    """Return the tokenizer of the sentence encoder that training starts from."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(store.file("minilm", "tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.enable_truncation(48)
    return tokenizer


def _prepare(arguments: argparse.Namespace) -> None:
    prepare(arguments.library, arguments.pack)


def _train(arguments: argparse.Namespace) -> None:
    store = WeightStore()
    tokenizer = open_tokenizer(store)
    material = load(arguments.data, arguments.packs)
    captions = sum(len(item.captions) for item in material.training)
    print(f"{len(material.training):,} pictures and videos with {captions:,} captions", flush=True)
    tower = train(
        material,
        minilm_network(store),
        tokenizer,
        Settings(
            arguments.steps,
            arguments.batch,
            arguments.lr,
            arguments.seed,
            arguments.minutes,
            arguments.translations,
        ),
        arguments.out,
        lambda line: print(line, flush=True),
        list(translations(arguments.data)) if arguments.translations else (),
        None if arguments.start is None else torch.load(arguments.start, weights_only=True)["tower"],
    )
    for name, items in material.measured.items():
        if items:
            print(name, *(f"{value:.1f}" for value in recall(tower, tokenizer, items)), flush=True)


def _export(arguments: argparse.Namespace) -> None:
    store = WeightStore()
    tower = Tower(minilm_network(store))
    held = torch.load(arguments.tower, weights_only=True)
    tower.load_state_dict(held["tower"])
    card = {"name": "joint", "training": {"steps": held["steps"], **held["settings"]}}
    export(tower, open_tokenizer(store), card, arguments.out)


def main() -> None:
    """Run one of the three steps."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(required=True)
    first = verbs.add_parser("prepare")
    first.add_argument("library", type=Path)
    first.add_argument("--pack", type=Path, required=True)
    first.set_defaults(run=_prepare)
    second = verbs.add_parser("train")
    second.add_argument("--data", type=Path, required=True)
    second.add_argument("--packs", type=Path, required=True)
    second.add_argument("--out", type=Path, required=True)
    defaults = Settings()
    second.add_argument("--steps", type=int, default=defaults.steps)
    second.add_argument("--batch", type=int, default=defaults.batch)
    second.add_argument("--lr", type=float, default=defaults.lr)
    second.add_argument("--seed", type=int, default=defaults.seed)
    second.add_argument("--minutes", type=float, default=defaults.minutes)
    second.add_argument("--translations", type=int, default=defaults.translations)
    second.add_argument("--start", type=Path, help="a trained tower to go on from")
    second.set_defaults(run=_train)
    third = verbs.add_parser("export")
    third.add_argument("tower", type=Path)
    third.add_argument("--out", type=Path, required=True)
    third.set_defaults(run=_export)
    arguments = made.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
