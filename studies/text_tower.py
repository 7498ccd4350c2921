"""Train the text tower and the adapter of the default model.

    python studies/text_tower.py prepare coco.lib --pack PACKS/coco.npz
    python studies/text_tower.py train --data DATA --packs PACKS --out tower.pt --steps 1200 --seed 0
    python studies/text_tower.py words --start tower.pt --data DATA --pairs PAIRS --out words.pt --minutes 40
    python studies/text_tower.py export words.pt --out src/wordreel/models/joint

`prepare` takes what the eyes saw from a library (of flickr8k, coco, msvd, msrvtt, or further COCO pictures as
`coco-NAME`). `train` teaches captions and prints recall on what it never saw. `words` adds languages: PAIRS
holds one `LANGUAGE.tsv` for each, with English texts and their translations in two columns (sentences, and
words of a dictionary); with `--lists`, their words go where searches look up what they understand. `export`
writes the files that ship. `--start` is a trained tower or a folder of the files that ship; `--minutes` ends
a training by the clock, its learning rate with it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tower_export import export
from tower_material import load, prepare, sentences, translations
from tower_training import Settings, Tower, recall, train
from tower_word_training import train_words
from tower_words import TABLE, add_words, complete, read_shipped, write_word_lists

from wordreel.lab.models.config import MINILM
from wordreel.lab.models.text.bert import Bert
from wordreel.lab.models.text.pretrained import minilm_network
from wordreel.runtime.store import WeightStore


def open_tokenizer(text: str) -> Any:
    """Return a tokenizer from its file's text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(48)
    return tokenizer


def read_tower(path: Path) -> tuple[dict[str, torch.Tensor], str, dict[str, Any]]:
    """Return state, tokenizer and card of a trained tower, or of a folder of the files that ship."""
    if path.is_dir():
        return read_shipped(path)
    saved = torch.load(path, weights_only=True)
    return saved["tower"], saved["tokenizer"], saved["card"]


def build_tower(state: dict[str, torch.Tensor]) -> Tower:
    """Return a tower with this state, of as many words as it has."""
    tower = Tower(Bert(replace(MINILM, vocabulary=len(state[TABLE]))))
    tower.load_state_dict(complete(state, tower.state_dict()))
    return tower


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(arguments.steps, arguments.batch, arguments.lr, arguments.seed, arguments.minutes)


def _save(tower: Tower, tokenizer: str, card: dict[str, Any], out: Path) -> None:
    torch.save({"tower": tower.state_dict(), "tokenizer": tokenizer, "card": card}, out)


def _print(line: str) -> None:
    print(line, flush=True)


def _prepare(arguments: argparse.Namespace) -> None:
    prepare(arguments.library, arguments.pack)


def _train(arguments: argparse.Namespace) -> None:
    store = WeightStore()
    material = load(arguments.data, arguments.packs)
    captions = sum(len(item.captions) for item in material.training)
    print(f"{len(material.training):,} pictures and videos with {captions:,} captions", flush=True)
    card: dict[str, Any] = {"name": "joint"}
    if arguments.start is None:
        state, network = None, minilm_network(store)
        text = store.file("minilm", "tokenizer.json").read_text(encoding="utf-8")
    else:
        state, text, card = read_tower(arguments.start)
        tower = build_tower(state)
        state, network = tower.state_dict(), tower.network
    tokenizer = open_tokenizer(text)
    tower, steps = train(material, network, tokenizer, _settings(arguments), _print, state)
    run = {"items": len(material.training), "captions": captions, "steps": steps}
    _save(tower, text, {**card, "training": {**run, **vars(_settings(arguments))}}, arguments.out)
    for name, items in material.measured.items():
        if items:
            print(name, *(f"{value:.1f}" for value in recall(tower, tokenizer, items)), flush=True)


def _words(arguments: argparse.Namespace) -> None:
    state, text, card = read_tower(arguments.start)
    pairs = translations(arguments.pairs)
    table, extended, rows = add_words(state[TABLE].numpy(), text, pairs, sentences(arguments.data))
    tower = build_tower({**state, TABLE: torch.from_numpy(table)})
    steps = train_words(tower, rows, open_tokenizer(extended), pairs, _settings(arguments), _print)
    run = {"pairs": {language: len(own) for language, own in pairs.items()}, "steps": steps}
    _save(tower, extended, {**card, "words": {**run, **vars(_settings(arguments))}}, arguments.out)
    if arguments.lists is not None:
        write_word_lists(pairs, arguments.lists)


def _export(arguments: argparse.Namespace) -> None:
    state, text, card = read_tower(arguments.tower)
    export(build_tower(state), open_tokenizer(text), card, arguments.out)


def _add_training(verb: argparse.ArgumentParser, defaults: Settings) -> None:
    verb.add_argument("--data", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--steps", type=int, default=defaults.steps)
    verb.add_argument("--batch", type=int, default=defaults.batch)
    verb.add_argument("--lr", type=float, default=defaults.lr)
    verb.add_argument("--seed", type=int, default=defaults.seed)
    verb.add_argument("--minutes", type=float, default=defaults.minutes)


def main() -> None:
    """Run one of the four steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("prepare")
    verb.add_argument("library", type=Path)
    verb.add_argument("--pack", type=Path, required=True)
    verb.set_defaults(run=_prepare)
    verb = verbs.add_parser("train")
    _add_training(verb, Settings())
    verb.add_argument("--packs", type=Path, required=True)
    verb.add_argument("--start", type=Path, help="a trained tower to continue from")
    verb.set_defaults(run=_train)
    verb = verbs.add_parser("words")
    _add_training(verb, Settings(batch=256, lr=1e-3))
    verb.add_argument("--pairs", type=Path, required=True)
    verb.add_argument("--start", type=Path, required=True, help="a trained tower, or the folder that ships")
    verb.add_argument("--lists", type=Path, help="also write the words of each language here")
    verb.set_defaults(run=_words)
    verb = verbs.add_parser("export")
    verb.add_argument("tower", type=Path)
    verb.add_argument("--out", type=Path, required=True)
    verb.set_defaults(run=_export)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
