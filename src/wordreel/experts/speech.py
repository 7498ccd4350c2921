"""What is said: Whisper base (Radford et al. 2022) behind a voice-activity filter, in any of its languages.

Base rather than tiny: the tiny model to be had is English only and lost whole speeches under music.
Decoding is greedy at temperature 0, without a prompt from the text before, so the same sound always gives
the same words; what the usual fallback would have sampled again is dropped instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, ExpertEntry, fingerprint
from wordreel.experts.whisper import find_speech, open_whisper
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track, Words

WEIGHTS = "whisper-base"
RATE = 16_000
CARD = Card(
    name="speech", modality="speech", title="Speech: the words that are said, and when", dim=1,
    need=AudioNeed(RATE), licence="MIT", weights=(WEIGHTS,), version=3, span=300.0, quiet=10.0,
    note="Whisper base, 99 languages; a row for each line, with its confidence",
    also=frozenset({"ba200cd7e1a48739"}),
)  # fmt: skip

MIN_LANGUAGE = 0.3  # real speech in one language is more certain than this; noise and singing are not
MIN_LOGPROB = -1.0  # mean log-probability per token under which Whisper's authors decode again
MAX_REPETITION = 2.4  # compression ratio over which a text is a loop
MIN_WORD = 0.15  # mean probability of a segment's words
STOPS = (".", "?", "!", "…", "؟", "।")
WIDE_STOPS = ("。", "？", "！")
PAUSE = 0.7  # seconds
LONGEST = 6.0  # seconds
STOCK = re.compile(
    r"(thank(s| you)( (so|very) much)?( for (watching|listening))?|you|bye( bye)?|okay|oh|"
    r"please subscribe.*|(subtitles|captions|transcri\w+) by .*)"
)
"""What Whisper hallucinates for music and noise: phrases that end half of the films it was trained on."""


class SpokenWord(Protocol):
    """The used part of a faster-whisper word; its text starts with a space where a new word starts."""

    word: str
    start: float
    end: float
    probability: float


class SpeechSegment(Protocol):
    """The used part of a faster-whisper segment."""

    text: str
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float
    words: Sequence[SpokenWord] | None


class SpeechExpert:
    """Recognise spoken words by Whisper."""

    card = CARD

    def __init__(self, store: WeightStore) -> None:
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS))
        self._whisper = open_whisper(store.folder(WEIGHTS))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        if not isinstance(media, Sound):
            raise TypeError("the speech expert takes sound")
        if media.rate != RATE:
            raise ValueError(f"the speech expert takes sound at {RATE} Hz, got {media.rate}")
        lines = [
            line
            for segment in transcribe(self._whisper, bounded(media.samples))
            for line in phrases(segment.words or (), media.start)
        ]
        return Track.of_lines(lines) if lines else Absent("no speech")


EXPERTS = {CARD.name: ExpertEntry(CARD, SpeechExpert)}


def bounded(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Finite samples in [-1, 1]: the same array if they are, as half an hour of sound takes 115 MB.

    >>> bounded(np.array([0.5, np.nan, np.inf, -3.0], np.float32)).tolist()
    [0.5, 0.0, 0.0, -1.0]
    """
    if len(samples) and samples.min() >= -1.0 and samples.max() <= 1.0:  # a NaN fails both
        return np.ascontiguousarray(samples, np.float32)
    finite: NDArray[np.float32] = np.nan_to_num(samples, posinf=0.0, neginf=0.0)
    return np.clip(finite, np.float32(-1.0), np.float32(1.0))


def transcribe(whisper: Any, samples: NDArray[np.float32]) -> Iterator[SpeechSegment]:
    """Yield the segments worth keeping, with their words, in seconds from the first sample.

    Silence is cut out first: it costs time, and Whisper fills it with words of its own. Sound whose language
    cannot be told from its first minutes is no speech.
    """
    from faster_whisper.transcribe import restore_speech_timestamps

    if len(samples) < RATE // 10:
        return
    voiced = find_speech(samples)
    if not voiced:
        return
    heard = np.concatenate([samples[part["start"] : part["end"]] for part in voiced])
    # Without its last frame this begins with the very window read first, so that is encoded once.
    features = whisper.feature_extractor(heard)[..., :-1]
    language, confidence, _ = whisper.detect_language(features=features, language_detection_segments=3)
    if confidence < MIN_LANGUAGE:
        return
    segments, _ = whisper.transcribe(
        heard,
        language=language,
        beam_size=1,
        temperature=0.0,
        condition_on_previous_text=False,
        word_timestamps=True,
        max_new_tokens=224,  # what the authors allow; a loop stops sooner
    )
    yield from filter(is_speech, restore_speech_timestamps(segments, voiced, RATE))


def is_speech(segment: SpeechSegment) -> bool:
    """Return whether a segment is speech, not text hallucinated from music, noise or silence."""
    words = segment.words or ()
    if segment.avg_logprob < MIN_LOGPROB or segment.compression_ratio > MAX_REPETITION or not words:
        return False
    confidence = float(np.mean([word.probability for word in words]))
    if confidence < MIN_WORD:
        return False
    plain = re.sub(r"[^\w\s]", "", segment.text).strip().lower()
    if not plain:
        return False
    return not (STOCK.fullmatch(plain) and (segment.no_speech_prob > 0.1 or confidence < 0.6))


def phrases(spoken: Iterable[SpokenWord], start: float = 0.0) -> Iterator[Words]:
    """Yield lines of words short enough to point at.

    They are cut at a full stop, at a pause, or before `LONGEST` seconds.

    A phrase rather than a word is the unit of search and display, so that several words can be searched
    together; its times are those of its first and last word. Whisper marks a new word by a space before
    it: the pieces of "5.4", and of languages written without spaces, join up again.
    """
    line: list[SpokenWord] = []
    for word in spoken:
        if line and (
            _ends(line[-1].word, word.word)
            or word.start - line[-1].end >= PAUSE
            or word.end - line[0].start > LONGEST
        ):
            yield from _phrase(line, start)
            line = []
        line.append(word)
    yield from _phrase(line, start)


def _ends(word: str, following: str) -> bool:
    """Whether a sentence ends between two words; the point in "5.4" has no space after it."""
    return word.endswith(WIDE_STOPS) or (word.endswith(STOPS) and following.startswith(" "))


def _phrase(line: list[SpokenWord], start: float) -> Iterator[Words]:
    text = "".join(word.word for word in line).strip()
    if text:
        first, last = float(line[0].start), max(float(word.end) for word in line)
        confidence = float(np.mean([word.probability for word in line]))
        yield Words(text, start + first, start + max(first, last), confidence)
