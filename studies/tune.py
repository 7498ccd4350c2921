"""What is tuning worth, and does it refuse what it should?

    python studies/tune.py LIBRARY CAPTIONS --name msvd --videos 100 300 --styles plain coded shuffled
    python studies/tune.py --table

Some videos of the library are the user's captioned ones; the captions of all *other* videos, which tuning
never sees, are asked before and after. Styles:

- plain: the captions as they are;
- coded: every content word replaced by a made-up one, the same each time: a vocabulary nobody trained on;
- shuffled: captions given to wrong videos, which must be refused.

One JSON file per run under results/tune, and a table made from all of them in results/tune/README.md and
docs/tune.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from wordreel.lab.datasets import json_captions, registry
from wordreel.lab.evaluate.library import score
from wordreel.library import Library
from wordreel.models.reel.checkpoint import SHIPPED
from wordreel.retrieval.caption_ranks import text_to_video_ranks
from wordreel.retrieval.metrics import retrieval_metrics
from wordreel.retrieval.significance import compare
from wordreel.search.searcher import Searcher
from wordreel.util.checksum import file_sha256

OUT = Path("results/tune")
PAGE = Path("docs/tune.md")  # the table stands there between <!-- results --> and <!-- end -->
EACH = 10  # captions of a video that the user wrote
ASKED = 5  # captions of every other video that are asked
SMALL_WORDS = (
    " a an the is are was of in on to with and his her their it its at by for from into up down out off over "
    "being be some as that this there he she they them him while who "
)
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


def code(word: str) -> str:
    """A made-up word, the same one for the same word."""
    drawn = hashlib.sha256(word.encode()).digest()
    return "".join(
        (CONSONANTS if place % 2 == 0 else VOWELS)[byte % (14 if place % 2 == 0 else 5)]
        for place, byte in enumerate(drawn[:5])
    )


def coded(text: str) -> str:
    return " ".join(w if f" {w} " in SMALL_WORDS else code(w) for w in re.findall(r"[a-z']+", text.lower()))


def asked(library: Library, model: str, captions: dict[str, list[str]]) -> np.ndarray:
    """Ranks of captions among their own videos, with one of the library's models."""
    library.use(model)
    found = score(Searcher.open(library.store, library.model), captions)
    return text_to_video_ranks(found.similarities, found.captions), found.captions.owner


def some(texts: list[str], count: int, seed: str) -> list[str]:
    return random.Random(seed).sample(texts, min(count, len(texts)))  # noqa: S311 - a study, no secret


def run(library: Library, captions: dict[str, list[str]], style: str, videos: int, seed: int) -> dict:
    """Tune with some videos' captions and ask those of the others."""
    names = sorted(captions)
    random.Random(seed).shuffle(names)  # noqa: S311
    own, rest = names[:videos], names[videos:]
    change = coded if style == "coded" else str
    givers = own if style != "shuffled" else some(own, len(own), "shuffled")
    told = {
        name: [change(text) for text in some(captions[giver], EACH, name)]
        for name, giver in zip(own, givers, strict=True)
    }
    begun = file_sha256(SHIPPED)
    library.use("reel")
    tuned = library.tune(told, seed=seed)
    model = tuned.fingerprint
    weights = file_sha256(SHIPPED)
    facts = {
        "weights": weights,
        "style": style,
        "videos": videos,
        "others": len(rest),
        "seed": seed,
        "tuned": asdict(tuned),
    }
    for way, changed in (("same style", change), ("plain", str)):
        questions = {name: [changed(text) for text in some(captions[name], ASKED, name)] for name in rest}
        before, owner = asked(library, "reel", questions)
        after = asked(library, model, questions)[0] if tuned.better else before
        facts[way] = {
            "before": asdict(retrieval_metrics(before)),
            "after": asdict(retrieval_metrics(after)),
            "gain": asdict(compare(before, after, "Rsum", groups=owner)),
        }
    if {weights, file_sha256(SHIPPED)} != {begun}:
        raise SystemExit("the default model was replaced while it was being measured; run this again")
    return facts


def table(folder: Path) -> str:
    lines = [
        "| collection | captions | videos | held out: gain in Rsum | kept | others, before | others, after "
        "| gain [95 %] | others, plain words | everyday hits kept | seconds |",
        "|---" * 11 + "|",
    ]
    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        tuned, same, plain = facts["tuned"], facts["same style"], facts["plain"]
        cells = [
            facts["name"],
            facts["style"],
            str(facts["videos"]),
            f"{tuned['gain']:+.1f} [{tuned['low']:+.1f}, {tuned['high']:+.1f}]",
            "yes" if tuned["better"] else "refused",
            *(
                " / ".join(f"{same[when][k]:.1f}" for k in ("r1", "r5", "r10"))
                for when in ("before", "after")
            ),
            "0"
            if not tuned["better"]
            else f"{same['gain']['difference']:+.1f} "
            f"[{same['gain']['low']:+.1f}, {same['gain']['high']:+.1f}]",
            "0"
            if not tuned["better"]
            else f"{plain['gain']['difference']:+.1f} "
            f"[{plain['gain']['low']:+.1f}, {plain['gain']['high']:+.1f}]",
            f"{tuned['everyday_kept']:.0%}",
            f"{tuned['seconds']:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library", type=Path, nargs="?")
    parser.add_argument("captions", nargs="?")
    parser.add_argument("--ids")
    parser.add_argument("--name", default="mine")
    parser.add_argument("--videos", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--styles", nargs="+", default=["plain", "coded", "shuffled"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="only make the table anew")
    asked_for = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not asked_for.table:
        captions = registry.read(asked_for.captions).captions
        if asked_for.ids:
            wanted = set(json_captions.read_ids(asked_for.ids))
            captions = {name: texts for name, texts in captions.items() if name in wanted}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(asked_for.library, Path(folder) / "library")
            library = Library(Path(folder) / "library", create=False)
            files = {Path(f.path).name for f in library.store.files()}
            files |= {Path(name).stem for name in files}
            here = {name: texts for name, texts in captions.items() if name in files}
            for videos in asked_for.videos:
                for style in asked_for.styles:
                    facts = run(library, here, style, videos, asked_for.seed)
                    place = OUT / f"{asked_for.name}_{style}_{videos}.json"
                    facts["tuned"].pop("missing")
                    text = json.dumps({"name": asked_for.name, **facts}, indent=1)
                    place.write_text(text + "\n", encoding="utf-8")
                    print(
                        place, facts["tuned"]["gain"], facts["same style"]["gain"]["difference"], flush=True
                    )
    rows = table(OUT)
    text = "# What tuning is worth\n\nMade by `studies/tune.py`; see `docs/tune.md`.\n\n" + rows
    (OUT / "README.md").write_text(text, encoding="utf-8")
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition("<!-- results -->\n")
    PAGE.write_text(f"{before}{mark}{rows}<!-- end -->{rest.partition('<!-- end -->')[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
