"""Small changes of bytes, texts, JSON values, pickles and safetensors files, drawn by a seeded generator."""

from __future__ import annotations

import json
import pickletools
import struct
from collections.abc import Sequence
from random import Random
from typing import Any

NUMBERS = (
    0, 1, 2, 3, 7, 8, 16, 32, 63, 64, 127, 128, 255, 256, 1000, 32767, 65535, 2**24, 2**31 - 1, 2**31,
    2**32 - 1, 2**40, 2**53, 2**62, 2**63 - 1, 2**64 - 1,
)  # fmt: skip
WORDS = (
    b"0", b"-1", b"1e309", b"nan", b"NaN", b"Infinity", b"-0.0", b"null", b"true", b"[]", b"{}", b'""',
    b"\x00", b"\n", b"\r\n", b",", b"'", b'"', b"\\", b"%s", b"../", b"/etc/passwd", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\x1b[2J", b"\xe2\x80\xae", b"\xed\xa0\x80", b"9" * 400, b"A" * 300,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.5, -0.0, 1e308, float("inf"), float("nan"), 2**31, 2**63, 2**64,
    10**400, "", "a", "0", "-1", "nan", "../x", "\x00", "\x1b[2J", "\ud800", "é" * 50, [], {}, [[]],
    {"": None}, [None] * 20,
)  # fmt: skip
LONGEST = 1 << 17  # bytes of an input


def mutate_bytes(rng: Random, data: bytes, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS) -> bytes:
    """One to eight changes of single bytes, numbers, words and ranges."""
    changed = bytearray(data)
    for _ in range(1 + min(7, int(rng.expovariate(0.7)))):
        _change(rng, changed, corpus, words)
    return bytes(changed[:LONGEST])


def _change(rng: Random, data: bytearray, corpus: Sequence[bytes], words: Sequence[bytes]) -> None:
    at = _position(rng, len(data))
    end = at + 1 + min(len(data) - at, int(rng.expovariate(1 / 12)))
    kind = rng.randrange(10)
    if kind == 0 and data:
        data[at % len(data)] ^= 1 << rng.randrange(8)
    elif kind == 1 and data:
        data[at % len(data)] = rng.randrange(256)
    elif kind == 2:
        width = rng.choice((1, 2, 4, 8))
        number = rng.choice(NUMBERS) % 2 ** (8 * width)
        data[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
    elif kind == 3:
        del data[at:end]
    elif kind == 4:
        data[at:at] = data[at:end] * rng.choice((1, 1, 2, 50))
    elif kind == 5:
        data[at:at] = rng.choice(words)
    elif kind == 6:
        word = rng.choice(words)
        data[at : at + len(word)] = word
    elif kind == 7:
        data[at:end] = rng.randbytes(end - at)
    elif kind == 8 and rng.random() < 0.4:
        del data[at:]
    elif kind == 9 and corpus:
        other = rng.choice(corpus)
        data[at:] = other[_position(rng, len(other)) :]


def _position(rng: Random, size: int) -> int:
    """Anywhere; half of the time near the start, where headers are."""
    return int(size * rng.random() ** (4 if rng.random() < 0.5 else 1))


def mutate_text(rng: Random, data: bytes, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS) -> bytes:
    """Change tokens of a text, or its bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data, corpus, words)
    lines = data.split(b"\n")
    for _ in range(1 + min(4, int(rng.expovariate(0.7)))):
        at = rng.randrange(len(lines))
        tokens = _tokens(lines[at])
        spot = rng.randrange(len(tokens) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            tokens[spot : spot + 1] = [rng.choice(words)]
        elif kind == 1:
            tokens.insert(spot, rng.choice(words))
        elif kind == 2:
            del tokens[spot : spot + 1]
        elif kind == 3:
            lines.insert(at, rng.choice(lines))
        else:
            tokens[spot : spot + 1] = [str(rng.choice(NUMBERS) * rng.choice((1, -1))).encode()]
        lines[at] = b"".join(tokens)
    return b"\n".join(lines)[:LONGEST]


def _tokens(line: bytes) -> list[bytes]:
    tokens: list[bytes] = []
    for byte in line:
        one = bytes([byte])
        if tokens and one.isalnum() and tokens[-1][-1:].isalnum():
            tokens[-1] += one
        else:
            tokens.append(one)
    return tokens


def mutate_json(rng: Random, data: bytes, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS) -> bytes:
    """Change values, keys and nesting of a JSON document; its bytes where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_text(rng, data, corpus, words)
    if rng.random() < 0.15:
        return mutate_text(rng, data, corpus, words)
    for _ in range(1 + min(3, int(rng.expovariate(0.9)))):
        value = mutate_value(rng, value)
    return json.dumps(value).encode("utf-8", "surrogatepass")[:LONGEST]


def mutate_value(rng: Random, value: Any) -> Any:
    """A copy of a JSON value with one change somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        kind = rng.randrange(6)
        if kind == 0:
            return {name: part for name, part in value.items() if name != key}
        if kind == 1:
            return {**value, str(rng.choice(("", "x", "\x1b", key + "x"))): rng.choice(VALUES)}
        return {**value, key: mutate_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        kind = rng.randrange(6)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return value[:at] + [value[at]] * rng.choice((2, 3, 40)) + value[at + 1 :]
        return [*value[:at], mutate_value(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, bool | None) or rng.random() < 0.5:
        return rng.choice(VALUES)
    if isinstance(value, int | float):
        return rng.choice((value + 1, -value, value * 2, rng.choice(NUMBERS), str(value), [value]))
    if isinstance(value, str):
        text = mutate_bytes(rng, value.encode("utf-8", "surrogatepass"), ())
        return text.decode("utf-8", "replace")[:2000]
    return [value]


def mutate_pickle(rng: Random, data: bytes, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS) -> bytes:
    """Drop, repeat, move and splice the instructions of a pickle; its bytes where it is damaged already."""
    steps = _steps(data)
    if len(steps) < 2 or rng.random() < 0.4:
        return mutate_bytes(rng, data, corpus, words)
    for _ in range(1 + min(4, int(rng.expovariate(0.8)))):
        at = rng.randrange(len(steps))
        kind = rng.randrange(4)
        if kind == 0 and len(steps) > 1:
            del steps[at]
        elif kind == 1:
            steps.insert(at, rng.choice(steps))
        elif kind == 2:
            steps[at] = mutate_bytes(rng, steps[at], (), words)
        elif corpus:
            other = _steps(rng.choice(corpus))
            if other:
                steps.insert(at, rng.choice(other))
        if not steps:
            break
    return b"".join(steps)[:LONGEST]


def _steps(data: bytes) -> list[bytes]:
    edges = []
    try:
        edges = [at for _, _, at in pickletools.genops(data) if at is not None]
    except Exception:  # of a damaged pickle, as far as it goes
        return []
    return [data[a:b] for a, b in zip(edges, [*edges[1:], len(data)], strict=True)]


def mutate_safetensors(
    rng: Random, data: bytes, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS
) -> bytes:
    """Change the header of a safetensors file as JSON and keep its length right; else its bytes."""
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8 or rng.random() < 0.35:
        return mutate_bytes(rng, data, corpus, words)
    header = mutate_json(rng, data[8 : 8 + size], ())
    if rng.random() < 0.2:
        header += b" " * rng.randrange(9)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]
