"""Speech: a synthesised voice with known words, sounds without words, and what is made of segments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import pytest

from wordreel.experts import registry, speech
from wordreel.experts.speech import is_speech, phrases
from wordreel.ingest.expert_runner import SoundChunker
from wordreel.media.types import Frames, Sound
from wordreel.runtime.sessions import threads
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track, Words

GOLDEN = Path(__file__).parent / "golden"
RATE = speech.RATE


def voice() -> np.ndarray:
    """Ten seconds: a sentence, two seconds of silence, two more sentences."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(str(GOLDEN / "speech.ogg")) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().ravel() for frame in frames])


@pytest.fixture(scope="module")
def expert() -> speech.SpeechExpert:
    for name in speech.CARD.weights:
        if not WeightStore().has(name):
            pytest.skip(f"weights {name!r} are not on this machine: run `wordreel weights fetch {name}`")
    return speech.SpeechExpert(WeightStore())


@pytest.fixture(scope="module")
def said(expert: speech.SpeechExpert) -> Track:
    track = expert.extract(Sound(voice(), RATE, start=100.0))
    assert isinstance(track, Track)
    return track


def test_golden(said: Track) -> None:
    golden = json.loads((GOLDEN / "speech.json").read_text(encoding="utf-8"))
    assert [word.text for word in said.words] == golden["text"]
    np.testing.assert_allclose(said.times, golden["times"], atol=0.25)


def test_rows_and_words_go_together(said: Track) -> None:
    assert [[word.start, word.end] for word in said.words] == said.times.tolist()
    assert said.times.min() >= 100
    assert (np.diff(said.times[:, 0]) >= 0).all()
    assert said.values.tolist() == [[pytest.approx(word.score)] for word in said.words]


def test_two_runs_are_equal(expert: speech.SpeechExpert, said: Track) -> None:
    again = expert.extract(Sound(voice(), RATE, start=100.0))
    assert isinstance(again, Track)
    assert again.words == said.words
    np.testing.assert_array_equal(again.values, said.values)


def test_the_kept_window_changes_nothing(expert: speech.SpeechExpert, said: Track) -> None:
    """Twin: faster-whisper's own path, which cuts silence and tells the language by itself."""
    from faster_whisper import WhisperModel

    plain = WhisperModel(
        str(WeightStore().folder("whisper-base")), device="cpu", compute_type="int8", cpu_threads=threads()
    )
    segments, _ = plain.transcribe(
        voice(),
        beam_size=1,
        temperature=0.0,
        condition_on_previous_text=False,
        word_timestamps=True,
        vad_filter=True,
        max_new_tokens=224,
    )
    expected = [line for segment in segments for line in phrases(segment.words, 100.0)]
    assert [line.text for line in expected] == [word.text for word in said.words]
    np.testing.assert_allclose([(w.start, w.end) for w in expected], said.times, atol=1e-6)


def test_each_window_is_read_in_the_language_it_surely_is_in(
    expert: speech.SpeechExpert, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faster_whisper import WhisperModel
    from faster_whisper.tokenizer import Tokenizer

    class Model:
        def detect_language(self, heard: tuple[str, float]) -> list[list[tuple[str, float]]]:
            return [[(f"<|{heard[0]}|>", heard[1])]]

    asked: list[tuple[str, list[int]]] = []

    def generate(self: object, encoded: object, prompt: list[int], tokenizer: Tokenizer, options: object):
        asked.append((tokenizer.language_code, prompt))
        return None, 0.0, 0.0, 0.0

    monkeypatch.setattr(WhisperModel, "generate_with_fallback", generate)
    whisper = expert._whisper
    tokenizer = Tokenizer(whisper.hf_tokenizer, True, task="transcribe", language="en")
    monkeypatch.setattr(whisper, "model", Model())
    for heard in (("en", 0.9), ("de", 0.3), ("de", 0.8), ("fr", 0.4), ("ko", 0.6)):
        whisper.generate_with_fallback(heard, tokenizer.sot_sequence, tokenizer, None)
    assert [code for code, _ in asked] == ["en", "en", "de", "de", "ko"]
    for code, prompt in asked:
        assert prompt == Tokenizer(whisper.hf_tokenizer, True, task="transcribe", language=code).sot_sequence


def test_long_sound_is_cut_at_pauses(expert: speech.SpeechExpert, said: Track) -> None:
    """Each part gives its words at its own time, and no word is lost."""
    chunker = SoundChunker(4.0, quiet=2.0)
    pieces = [*chunker.push(Sound(voice(), RATE), len(voice()) / RATE), *chunker.flush()]
    assert len(pieces) > 1
    heard: list[Words] = []
    for piece in pieces:
        assert isinstance(piece.media, Sound)
        track = expert.extract(Sound(piece.media.samples, RATE, 100.0 + piece.media.start))
        heard += track.words if isinstance(track, Track) else ()
    # What ends a sentence may hang on what follows, which the end of a chunk hides.
    assert [word.text.rstrip(".!") for word in heard] == [word.text.rstrip(".!") for word in said.words]
    np.testing.assert_allclose([(word.start, word.end) for word in heard], said.times, atol=0.5)


def chords() -> np.ndarray:
    t = np.arange(4 * RATE) / RATE
    notes = [
        np.sin(2 * np.pi * f * t) * (np.sin(np.pi * t * (2 + i)) > 0) for i, f in enumerate((220, 277, 330))
    ]
    return 0.2 * np.sum(notes, axis=0)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(5 * RATE),
        np.zeros(0),
        np.ones(7),
        0.1 * np.random.default_rng(0).standard_normal(8 * RATE),
        chords(),
        np.sign(chords()),
        np.full(RATE, np.nan),
        np.full(RATE, np.inf),
    ],
    ids=["silence", "empty", "seven samples", "noise", "chords", "loud", "not numbers", "infinite"],
)
def test_nothing_said(expert: speech.SpeechExpert, samples: np.ndarray) -> None:
    assert expert.extract(Sound(samples.astype(np.float32), RATE)) == Absent("no speech")


def test_wrong_media(expert: speech.SpeechExpert) -> None:
    with pytest.raises(TypeError, match="sound"):
        expert.extract(Frames(np.zeros((1, 2, 2, 3), np.uint8), np.zeros(1), 1.0))
    with pytest.raises(ValueError, match="16000"):
        expert.extract(Sound(np.zeros(100, np.float32), 8000))


@dataclass
class Spoken:
    word: str
    start: float
    end: float
    probability: float = 0.9


@dataclass
class Segment:
    text: str
    avg_logprob: float = -0.3
    no_speech_prob: float = 0.05
    compression_ratio: float = 1.2
    sureness: float = 0.9
    words: Sequence[speech.SpokenWord] | None = None

    def __post_init__(self) -> None:
        self.words = [Spoken(f" {word}", i, i + 1, self.sureness) for i, word in enumerate(self.text.split())]


@pytest.mark.parametrize(
    ("segment", "kept"),
    [
        (Segment("the dog runs"), True),
        (Segment("the dog runs", avg_logprob=-1.2), False),
        (Segment("ha ha ha ha", compression_ratio=5.0), False),
        (Segment("the dog runs", sureness=0.1), False),
        (Segment("Thank you.", no_speech_prob=0.5), False),
        (Segment("Thanks for watching!", sureness=0.4), False),
        (Segment("Thank you."), True),
        (Segment("you", no_speech_prob=0.3), False),
        (Segment("thank you for the bread", no_speech_prob=0.3), True),
        (Segment("..."), False),
        (Segment(""), False),
    ],
)
def test_what_counts_as_speech(segment: Segment, kept: bool) -> None:
    assert is_speech(segment) is kept


def test_phrases_are_cut_at_stops_and_pauses() -> None:
    words = [
        Spoken(" Hello", 0, 1, 0.5),
        Spoken(" there.", 1, 2, 0.7),
        Spoken(" It", 2, 2.2),
        Spoken(" costs", 2.2, 2.6),
        Spoken(" 5.", 2.6, 3),
        Spoken("4", 3, 3.2),
        Spoken(" now", 4.5, 5),
    ]
    found = list(phrases(words, 10.0))
    assert [(w.text, w.start, w.end) for w in found] == [
        ("Hello there.", 10, 12),
        ("It costs 5.4", 12, 13.2),
        ("now", 14.5, 15),
    ]
    assert found[0].score == pytest.approx(0.6)


def test_phrases_are_short_and_lose_nothing() -> None:
    words = [Spoken(f" w{i}", i * 0.5, i * 0.5 + 0.5) for i in range(100)]
    found = list(phrases(words))
    assert " ".join(w.text for w in found) == " ".join(f"w{i}" for i in range(100))
    assert max(w.end - w.start for w in found) <= speech.LONGEST


def test_phrases_of_a_language_without_spaces() -> None:
    words = [Spoken("今日", 0, 1), Spoken("は。", 1, 2), Spoken("海", 2, 3), Spoken("だ", 3, 4)]
    assert [w.text for w in phrases(words)] == ["今日は。", "海だ"]
    assert list(phrases([])) == []
    assert list(phrases([Spoken(" ", 0, 1)])) == []
    assert list(phrases([Spoken(" a", 3, 2)])) == [Words("a", 3, 3, 0.9)]


def test_sound_that_is_in_bounds_is_not_copied() -> None:
    samples = np.array([-1.0, 0.0, 1.0], np.float32)
    assert np.shares_memory(speech.bounded(samples), samples)
    assert speech.bounded(np.array([np.nan, 2.0], np.float32)).tolist() == [0.0, 1.0]
    assert len(speech.bounded(np.zeros(0, np.float32))) == 0


def test_lines_of_earlier_versions_serve_as_well() -> None:
    for name in ("speech", "ocr"):
        (earlier,) = registry.card(name).also
        assert registry.is_current(name, earlier, "0" * 16)
        assert not registry.is_current(name, "1" * 16, "0" * 16)
    assert registry.is_current("ce/audio", "imported:1", "imported:1")
    assert not registry.is_current("ce/audio", "imported:1", "imported:2")
