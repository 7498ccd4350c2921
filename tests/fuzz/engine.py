"""Run a target on changed inputs: each must end in success or in one of wordreel's own errors.

Inputs that reach lines of wordreel that none reached before join the corpus and are changed further.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.watch import Hang, Lines, Watch, forget_peak, peak_memory, processor_time

import wordreel
from wordreel.errors import WordreelError

SOURCE = Path(wordreel.__file__).parent
CORPUS = Path(__file__).parent / "corpus"
LONGEST_MESSAGE = 4000


class Mutate(Protocol):
    def __call__(self, rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes: ...


class Broken(AssertionError):
    """A property of a target does not hold; the message says which."""


@dataclass
class Session:
    """A target made ready: inputs that must be accepted, and what reads one.

    `run` returns, or raises a `WordreelError`; it raises `Broken` where an answer is wrong.
    """

    seeds: list[bytes]
    run: Callable[[bytes], object]
    mutate: Mutate = mutate_bytes
    close: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Target:
    """Something that reads what others wrote. `build` makes a session in an empty folder."""

    name: str
    what: str
    build: Callable[[Path], Session]
    memory: int = 256 << 20  # bytes that one case may take above what the session had
    seconds: float = 20.0  # of processor time that one case may take
    programs: bool = False  # whether cases may start programs
    few: int = 30  # changed inputs in `make test`
    guided: bool = (
        True  # by the lines that inputs reach; damage to a file says little by them and runs slower
    )


@dataclass
class Finding:
    """One way in which a property failed: where, and the first input that showed it."""

    where: str
    what: str
    input: str  # hex, in full
    times: int = 1


@dataclass
class Report:
    """What one run of a target did."""

    target: str
    what: str
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    lines: int = 0
    corpus: int = 0
    findings: list[Finding] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Fuzzer:
    """A target in a folder, and the corpus and findings of its run."""

    def __init__(self, target: Target, folder: Path, lines: Lines, watch: Watch) -> None:
        self.target, self._lines, self._watch = target, lines, watch
        self.session = target.build(folder)
        self.report = Report(target.name, target.what)
        self._found: dict[str, Finding] = {}
        forget_peak()
        self._memory = peak_memory()

    def run(self, seed: int, cases: int, seconds: float, on_case: Callable[[bytes], object]) -> Report:
        """The seeds, earlier findings, then so many `cases` of changed inputs, or for so many `seconds`."""
        rng = Random(f"{self.target.name} {seed}")
        began = time.perf_counter()
        corpus: list[bytes] = []
        for data in [*self.session.seeds, *known_inputs(self.target.name)]:
            on_case(data)
            if not self.case(data) and len(corpus) < len(self.session.seeds):
                self._find(data, "seed", f"a good input is refused: {data[:80]!r}")
            corpus.append(data)
        most = self.report.cases + cases
        while self.report.cases < most and time.perf_counter() - began < seconds:
            data = self.session.mutate(rng, _pick(rng, corpus), corpus)
            on_case(data)
            before = len(self._lines.seen)
            self.case(data)
            if len(self._lines.seen) > before:
                corpus.append(data)
        self.session.close()
        self.report.seconds = round(time.perf_counter() - began, 1)
        self.report.lines = len(self._lines.seen)
        self.report.corpus = len(corpus)
        self.report.findings = list(self._found.values())
        return self.report

    def case(self, data: bytes) -> bool:
        """Whether the target accepted an input; what it must not do becomes a finding."""
        self.report.cases += 1
        accepted = False
        self._watch.start()
        try:
            with processor_time(self.target.seconds):
                self.session.run(data)
            accepted = True
        except WordreelError as error:
            if not error.message.strip() or len(error.message) > LONGEST_MESSAGE:
                self._find(data, _where(error), f"a message of {len(error.message)} characters")
        except (Exception, Hang) as error:
            self._find(data, _where(error), f"{type(error).__name__}: {error}"[:300])
        for text in self._watch.stop():
            self._find(data, "outside", text)
        used = peak_memory() - self._memory
        if used > self.target.memory:
            self._find(data, "memory", f"{used >> 20} MiB, more than {self.target.memory >> 20} MiB")
            forget_peak()
            self._memory = max(self._memory, peak_memory())
        self.report.accepted += accepted
        self.report.refused += not accepted
        return accepted

    def _find(self, data: bytes, where: str, what: str) -> None:
        known = self._found.get(where)
        if known is None:
            self._found[where] = Finding(where, what, data.hex())
        else:
            known.times += 1
            if len(data) * 2 < len(known.input):
                known.input, known.what = data.hex(), what


def known_inputs(target: str) -> list[bytes]:
    """Inputs that once failed, in `corpus/TARGET/`."""
    return [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]


def input_name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _pick(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """Any of the corpus, half of the time one of the latest."""
    recent = corpus[-8:] if rng.random() < 0.5 else corpus
    return rng.choice(recent)


def _where(error: BaseException) -> str:
    """The innermost line of wordreel, or of the tests, that an error passed, and its type."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(str(SOURCE))] or frames
    last = ours[-1] if ours else None
    place = f"{Path(last.filename).name}:{last.lineno} {last.name}" if last else "nowhere"
    return f"{type(error).__name__} at {place}"
