"""List the everyday things, actions and places that people write in captions, for the reasons of hits.

    python -m tools.concepts CAPTIONS... [--count 3200] [--out src/wordreel/models/joint/concepts.txt]

CAPTIONS are text files with a sentence a line (`.gz` too), or JSON files of captions by id. A phrase counts
where something ends it: "a video game" counts as one thing and not as "a video". Three patterns are counted:

    a|an|the|two … [word] noun          a thing: "guitar", "fire truck"
    verb-ing [a|the|…] [word] noun      an action with its object: "playing a guitar"
    verb-ing in|on|… [a|the] noun       an action and its place: "walking on the beach"
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src" / "wordreel" / "models" / "joint" / "concepts.txt"
SHARES = {"thing": 0.5, "action": 0.5}  # of the list
LEAST = 12  # sentences


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("""
    a an the his her their its two three some several
""")
PLACES = _words("""
    in on at through across along over under down up into onto around near by with
""")
ENDS = _words("""
    is are was were and or while in on at with near by next from to into onto over under through across
    along around behind beside that who which as against inside outside during for then very being has
    have had it they he she there this these before after between about above below together
""")
VAGUE = _words("""
    thing things something someone somebody everyone one ones other others person's way lot lots kind
    type types sort number bunch group groups couple pair variety row series set piece pieces part parts
    side sides top bottom front back middle center edge end background foreground distance view picture
    image photo photograph video clip footage scene camera shot close day time area place item items
    object objects stuff him her them it his their its himself herself themselves each another all both
    many few different same various large small big little very left right half first second next last
    looks look man's woman's boy's girl's s t
""")
LOOSE = _words("""
    to of looking other another each different many few all both same various large small big little very
    left right half first second next last man's woman's boy's girl's s t him her them it
""")
NOT_VERBS = _words("""
    being having doing going getting using something nothing anything everything during ring king string
    spring wing thing morning evening ceiling building wedding clothing wearing including showing
    featuring containing displaying according following
""")
NOT_NOUNS = _words("""
    white black red blue green yellow orange brown pink purple gray grey dark light bright young old
    older elderly long short tall wooden empty full busy open closed dirty clean wet dry hot cold
    beautiful cute colorful several two three four five six other stands sits sitting standing holding
    wearing looking playing riding walking running jumping talking who with next adult professional
    certain japanese asian african american indian chinese male female plastic giant huge single public
    outdoor indoor like not his upward ahead away whilst grassy tan backs outdoors indoors so just only
    also more most some any no be been do does did can could will would here where when how what why
    because
""")
WORD = re.compile(r"[a-z]+(?:-[a-z]+)?|[.,;!?]")


def sentences(path: Path) -> Iterator[str]:
    """The captions of one file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if ".json" in path.suffixes:
        yield from _texts(json.loads(data))
    else:
        yield from data.decode("utf-8").splitlines()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def phrases(words: list[str]) -> Iterator[tuple[str, str]]:
    """The things and actions of one caption, as (kind, phrase).

    >>> list(phrases("a young man is playing a video game .".split()))
    [('thing', 'young man'), ('action', 'playing a video game'), ('thing', 'video game')]
    >>> list(phrases("a dog running on the beach".split()))
    [('thing', 'dog'), ('action', 'running on the beach'), ('thing', 'beach')]
    """
    for at, word in enumerate(words):
        if word in ARTICLES:
            if noun := _noun(words, at + 1):
                yield "thing", " ".join(noun)
        elif _is_verb(word):
            rest = at + 1
            if rest < len(words) and words[rest] in PLACES:
                rest += 1
            if rest < len(words) and words[rest] in ARTICLES:
                rest += 1
            if noun := _noun(words, rest):
                yield "action", " ".join([*words[at:rest], *noun])


def _is_verb(word: str) -> bool:
    return word.endswith("ing") and len(word) > 5 and word not in NOT_VERBS


def _noun(words: list[str], start: int) -> list[str]:
    """One or two words that something ends; none if they are cut off or vague."""
    for length in (1, 2):
        noun, after = words[start : start + length], words[start + length : start + length + 1]
        if len(noun) < length or any(not word.isalpha() and "-" not in word for word in noun):
            return []
        if not after or after[0] in ENDS or not after[0].isalpha() or _is_verb(after[0]):
            last = noun[-1]
            wrong = last in VAGUE | NOT_NOUNS | ENDS | ARTICLES or len(last) < 3 or _is_verb(last)
            wrong = wrong or (last.endswith("ed") and len(last) > 4)  # "table covered" with a cloth
            return [] if wrong or noun[0] in LOOSE | ARTICLES | ENDS else noun
    return []


def choose(captions: Iterable[str], count: int) -> list[str]:
    """The most frequent phrases, one of those that differ only in number or article."""
    counted: dict[str, Counter[str]] = {kind: Counter() for kind in SHARES}
    for caption in captions:
        for kind, phrase in set(phrases(WORD.findall(caption.lower()))):
            counted[kind][phrase] += 1
    verbs = {phrase.partition(" ")[0].removesuffix("ing") for phrase in counted["action"]}
    chosen = []
    for kind, share in SHARES.items():
        seen: set[str] = set()
        for phrase, number in counted[kind].most_common():
            key = " ".join(_stem(word) for word in phrase.split() if word not in ARTICLES)
            if number < LEAST or len(seen) >= share * count:
                break
            first, _, last = phrase.rpartition(" ")
            sentence = kind == "thing" and first and last.endswith("s") and last[:-1] in verbs  # "band plays"
            if key not in seen and not sentence:
                seen.add(key)
                chosen.append(phrase)
    return sorted(set(chosen))


def _stem(word: str) -> str:
    """A word without its plural.

    >>> [_stem(word) for word in ("dogs", "beaches", "grass", "ladies")]
    ['dog', 'beach', 'grass', 'lady']
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(ch|sh|x|ss)es$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captions", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=3200)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    chosen = choose((text for path in options.captions for text in sentences(path)), options.count)
    options.out.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    print(f"{len(chosen)} concepts in {options.out}")


if __name__ == "__main__":
    main()
