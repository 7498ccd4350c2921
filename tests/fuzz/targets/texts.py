"""Texts that people write or other tools made: captions, runs, judgements, query logs and recipes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.fuzz.engine import Session, Target
from tests.fuzz.mutations import WORDS, mutate_json, mutate_text

from wordreel.banks.sources import from_log
from wordreel.lab.datasets import json_captions
from wordreel.lab.datasets.annotation_files import read_id_list
from wordreel.lab.datasets.caption_table import read_caption_table
from wordreel.lab.evaluate.trec import read_qrels, read_run, run_ranks
from wordreel.lab.training import recipe
from wordreel.search.caption import read_texts

Reader = Callable[[Path], object]
TOML = (b"[model]", b"[", b"]", b"=", b"''", b'"""', b"1979-05-27", b"0x_", b"inf", b"[[a]]", b"a.b.c")


def _split_folder(path: Path) -> object:
    folder = path.parent / "captioned"
    folder.mkdir(exist_ok=True)
    (folder / "captions.json").write_bytes(path.read_bytes())
    return json_captions.read_folder(folder)


def _splits(path: Path) -> object:
    folder = path.parent / "split"
    folder.mkdir(exist_ok=True)
    (folder / "captions.json").write_text('{"a": ["red"], "b": "blue"}')
    (folder / "splits.json").write_bytes(path.read_bytes())
    return json_captions.read_folder(folder, "test")


def _judged(path: Path) -> object:
    return run_ranks(read_run(path), {"q1": {"v1": 1}, "q2": {"v9": 0}})


CAPTIONS: tuple[tuple[str, bytes, Reader], ...] = (
    (".csv", b'path,caption,start,end,split\na.mp4,a man,0,2.5,x\nb.mp4,"rain, x",,,y\n', read_caption_table),
    (".tsv", b"file\tcaption\na.mp4\ta man sings\n", read_caption_table),
    (".jsonl", b'{"path": "a.mp4", "caption": "a man sings", "start": 0, "end": 2}\n', read_caption_table),
    (".json", b'{"a": ["red", "blue"], "b": "green"}', lambda p: json_captions.read_captions_at(str(p))),
    (".json", b'{"x": {"test": ["a", "b", 3]}}', lambda p: json_captions.read_ids(f"{p}:x.test")),
    (".txt", b"video1\nvideo2\n", read_id_list),
    (".json", b'[{"caption": "a dog"}, "two", ["three"]]', lambda path: read_texts(str(path))),
    (".jsonl", b'{"caption": "a dog"}\n"two"\n', lambda path: read_texts(str(path))),
    (".csv", b"id,caption\n1,a dog\n", lambda path: read_texts(str(path))),
    (".log", b'a dog runs\n{"query": "rain", "t": 1}\n', lambda path: from_log(str(path))),
    (".json", b'{"test": {"a": ["red"]}, "val": {"b": "blue"}}', _split_folder),
    (".json", b'{"official": {"test": ["a"], "val": ["b"]}, "missing_videos": ["b"]}', _splits),
)  # fmt: skip
RUNS: tuple[tuple[str, bytes, Reader], ...] = (
    (".run", b"q1 Q0 v1 1 0.9 tag\nq1 Q0 v2 2 0.5 tag\nq2 Q0 v1 1 -3e2 tag\n", _judged),
    (".qrels", b"q1 0 v1 1\nq2 0 v2 0\n", read_qrels),
    (".tsv", b"query-id\tcorpus-id\tscore\nq1\tv1\t1\n", read_qrels),
)  # fmt: skip


def session(cases: tuple[tuple[str, bytes, Reader], ...], folder: Path) -> Session:
    """Each input begins with the number of its reader."""

    def run(data: bytes) -> None:
        if data and data[0] < len(cases):
            ending, _, read = cases[data[0]]
            path = folder / f"input{ending}"
            path.write_bytes(data[1:])
            read(path)

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        others = [other[1:] for other in corpus]
        change = mutate_json if data[1:2] in (b"{", b"[") else mutate_text
        return data[:1] + change(rng, data[1:], others)

    return Session([bytes([number]) + case[1] for number, case in enumerate(cases)], run, mutate)


def recipe_session(folder: Path) -> Session:
    names = ("ce-msvd", "own-ce", *[name for name in recipe.names() if "mmt" in name][:1])
    root = Path(recipe.__file__).parent
    seeds = [(root / "recipes" / f"{name}.toml").read_bytes() for name in names]
    seeds += [path.read_bytes() for path in sorted((root / "recipes").glob("small-clip*.toml"))[:2]]
    seeds.append(b'inherit = "clip4clip-mean-msvd"\n[run]\nepochs = 2\n')
    path = folder / "own.toml"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        recipe.load(path, ["run.epochs=3"])

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        return mutate_text(rng, data, corpus, (*WORDS, *TOML))

    return Session(seeds, run, mutate)


TARGETS = (
    Target("captions", "caption tables, caption files, id lists, query logs", lambda f: session(CAPTIONS, f)),
    Target("runs", "TREC runs and judgements", lambda f: session(RUNS, f)),
    Target("recipes", "recipes in TOML", recipe_session),
)
