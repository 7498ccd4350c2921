"""A result as files: PREFIX.json (facts), PREFIX.ranks.npz (every query's rank), .md, .tex and .html.

The facts hold what is needed to make the numbers again: command, hashes of the inputs, versions, seeds. The
ranks are what a later comparison needs (`compare`); they hold hashes of the texts, not the texts.

The tables of a folder of results stand in its README between two marks; what is outside them is left alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel import __version__
from wordreel.errors import EvaluationError, NextStep
from wordreel.lab.evaluate.runs import EvaluationRun
from wordreel.lab.reports.tables import HEADER, QueryGroup, entry_of, latex, markdown, rows_of
from wordreel.types import Array, Float64, Int64
from wordreel.util.checksum import file_sha256

FORMAT = "wordreel result 1"
BEGIN = "<!-- begin: made by `wordreel results`; do not edit -->"
END = "<!-- end -->"
SHORT = 12  # digits of a hash that are displayed


@dataclass(frozen=True)
class QueryKeys:
    """The queries and the gallery: enough to tell whether two results can be compared."""

    owner: Int64  # [captions] column of each caption's video
    keys: Array  # [captions] uint32 hash of each text; of a bare matrix the number of the row
    videos: tuple[str, ...]  # id of each column; of a bare matrix its number


@dataclass(frozen=True)
class SavedResult:
    """A result read from its files; `ranks` has one array per run of the facts."""

    name: str
    facts: dict[str, Any]
    queries: QueryKeys
    ranks: tuple[Float64, ...]


def queries_of(
    owner: Int64, texts: Sequence[str] = (), videos: Sequence[str] = (), columns: int = 0
) -> QueryKeys:
    """Return keys for texts and columns; numbers stand in where a matrix has no names."""
    keys = [text_key(text) for text in texts] if texts else range(len(owner))
    names = tuple(videos) or tuple(str(number) for number in range(columns))
    return QueryKeys(owner, np.fromiter(keys, np.uint32, len(owner)), names)


def digests(queries: QueryKeys) -> dict[str, str]:
    """Return hashes of the queries and of the gallery."""
    asking = hashlib.sha256(queries.owner.astype("<i8").tobytes() + queries.keys.astype("<u4").tobytes())
    gallery = hashlib.sha256("\n".join(queries.videos).encode("utf-8", "surrogatepass"))
    return {"queries_sha256": asking.hexdigest(), "gallery_sha256": gallery.hexdigest()}


def text_key(text: str) -> int:
    """Return 32 bits of the text's SHA-256, to tell texts apart without giving them away.

    >>> text_key("a dog") == text_key("a dog"), text_key("a dog") == text_key("a cat")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def input_of(what: str, path: Path, name: str | None = None) -> dict[str, str]:
    """Describe one input as the facts list it, by its base name."""
    return {"what": what, "name": Path(name or path).name, "sha256": file_sha256(path)}


def facts_of(
    title: str,
    command: str,
    inputs: Sequence[Mapping[str, str]],
    measured: Mapping[str, Any],
    runs: Sequence[EvaluationRun],
    breakdown: Mapping[str, Sequence[QueryGroup]] | None = None,
    seeds: Sequence[int] = (),
) -> dict[str, Any]:
    """Return everything about a result but the ranks."""
    return {
        "format": FORMAT,
        "title": title,
        "command": command,
        "versions": {
            "wordreel": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "seeds": list(seeds),
        "inputs": [dict(entry) for entry in inputs],
        "measured": dict(measured),
        "runs": [entry_of(run) for run in runs],
        "breakdown": dict(breakdown or {}),
    }


def write(
    prefix: Path, facts: Mapping[str, Any], runs: Sequence[EvaluationRun], queries: QueryKeys, page: str
) -> list[Path]:
    """Write all files of a result; returns them."""
    written = write_tables(prefix, facts)
    try:
        written.append(beside(prefix, ".html"))
        written[-1].write_text(page, encoding="utf-8", errors="replace")
        written.append(beside(prefix, ".ranks.npz"))
        with written[-1].open("wb") as file:
            arrays: dict[str, Any] = {
                "owner": queries.owner.astype(np.int32),
                "keys": queries.keys,
                "videos": np.array(queries.videos, np.str_),
            }
            arrays |= {f"ranks{number}": run.ranks.astype(np.float32) for number, run in enumerate(runs)}
            np.savez_compressed(file, **arrays)
    except OSError as error:
        raise EvaluationError(f"{prefix}.* cannot be written: {error.strerror or error}") from None
    return written


def write_tables(prefix: Path, facts: Mapping[str, Any]) -> list[Path]:
    """Write PREFIX.json with the facts, and their table as .md and .tex."""
    rows = rows_of(facts["runs"])
    texts = {
        ".json": json.dumps(facts, indent=2, ensure_ascii=False) + "\n",
        ".md": f"# {facts['title']}\n\n{markdown(rows)}\n`{facts['command']}`\n",
        ".tex": latex(rows, f"{facts['title']}\n{facts['command']}"),
    }
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        for ending, text in texts.items():
            beside(prefix, ending).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise EvaluationError(f"{prefix}.* cannot be written: {error.strerror or error}") from None
    return [beside(prefix, ending) for ending in texts]


def read(prefix: Path) -> SavedResult:
    """Return a result from its prefix, or from the name of its JSON file."""
    prefix = prefix.with_suffix("") if prefix.suffix == ".json" else prefix
    try:
        facts = json.loads(beside(prefix, ".json").read_text(encoding="utf-8"))
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise EvaluationError(f"{prefix}.json is not a result of `wordreel evaluate --out`")
        with np.load(beside(prefix, ".ranks.npz"), allow_pickle=False) as held:
            queries = QueryKeys(
                held["owner"].astype(np.int64), held["keys"], tuple(str(v) for v in held["videos"])
            )
            ranks = tuple(held[f"ranks{n}"].astype(np.float64) for n in range(len(facts["runs"])))
        saved = SavedResult(prefix.name, facts, queries, ranks)
        _check(saved)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise EvaluationError(
            f"no result can be read at {prefix}: {error}",
            NextStep("write one", f"evaluate … --out {prefix}"),
        ) from None
    return saved


def _check(saved: SavedResult) -> None:
    """Refuse facts and ranks that come from different runs."""
    keys, videos = saved.queries, len(saved.queries.videos)
    if keys.owner.ndim != 1 or keys.owner.shape != keys.keys.shape:
        raise ValueError("every query has an owner and a key")
    if len(keys.owner) and not 0 <= keys.owner.min() <= keys.owner.max() < videos:
        raise ValueError("queries belong to videos that are not there")
    if not isinstance(saved.facts["measured"]["kind"], str):
        raise ValueError("the facts do not name what they measure")
    for run, ranks in zip(saved.facts["runs"], saved.ranks, strict=True):
        wanted = len(keys.owner) if run["direction"] == "t2v" else videos
        if ranks.shape != (wanted,) or not {"protocol", "postprocessing"} <= set(run):
            raise ValueError("the ranks are not those of the runs")


def beside(prefix: Path, ending: str) -> Path:
    """Return the file of a result with this ending; a dot in the prefix is part of its name.

    >>> beside(Path("v1.2"), ".json").name
    'v1.2.json'
    """
    return prefix.with_name(prefix.name + ending)


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Read every result of a folder by its name, in order of names; pass over other JSON files."""
    if not folder.is_dir():
        raise EvaluationError(
            f"there is no folder {folder}", NextStep("write a result", f"evaluate … --out {folder}/NAME")
        )
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise EvaluationError(f"{path} cannot be read: {error}") from None
        if isinstance(facts, dict) and facts.get("format") == FORMAT:
            results[path.stem] = facts
    if not results:
        raise EvaluationError(
            f"no results in {folder}", NextStep("write a result", f"evaluate … --out {folder}/NAME")
        )
    return results


def tables(folder: Path) -> str:
    """Format metrics of all results, then the command and inputs of each, as Markdown."""
    results = read_results(folder)
    metrics = [["result", "model", *HEADER]]
    sources = [["result", "what", "command", "inputs (sha256)"]]
    for name, facts in results.items():
        model = facts["measured"].get("model") or "–"
        metrics += [[name, model, *row] for row in rows_of(facts["runs"])[1:]]
        inputs = dict.fromkeys(f"{entry['name']} `{entry['sha256'][:SHORT]}`" for entry in facts["inputs"])
        apart = "; ".join(facts["measured"]["deviations"])
        what = f"{facts['title']} ({apart})" if apart else facts["title"]
        sources.append([name, what, f"`{facts['command']}`", ", ".join(inputs)])
    return f"{markdown(metrics)}\n{markdown(sources)}"


def replace_tables(text: str, tables: str) -> str:
    r"""Replace what stands between the marks of a text.

    >>> replace_tables(f"a\n{BEGIN}\nold\n{END}\nb", "new\n") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb"
    True
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise EvaluationError(f"the marks are missing: put the lines {BEGIN} and {END} where tables belong")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"
