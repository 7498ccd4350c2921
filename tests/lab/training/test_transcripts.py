"""Segments of transcripts against the plain way: cut the words, join them, encode the text."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import BERT, CONFIGS, toy_pairs, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.datasets.types import Caption  # noqa: E402
from wordreel.lab.models.config import TextConfig  # noqa: E402
from wordreel.lab.models.text.tokenizers import open_tokenizer  # noqa: E402
from wordreel.lab.training.data.transcripts import TranscriptStore, split_transcripts  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.training_data import prepare  # noqa: E402

CPU = torch.device("cpu")
WORDS = ["now", "we", "mix", "It", "stir##", "stirring", "the", "don't", "pan!", "Ünder", "xyzzy", "oil."]
VOCABULARY = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] . ! ' # now we mix it stir ##ring the don t pan under Now oil ##s"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text(VOCABULARY.replace(" ", "\n"))
    return tmp_path


def transcribed(seed=0, many=8):
    """Videos with transcripts of 0 to 40 words, each word a second long."""
    rng = np.random.default_rng(seed)
    captions = []
    for count in [1, 5, 6, 40, *rng.integers(2, 30, many - 4)]:
        spoken = list(rng.choice(WORDS, count))
        start = rng.uniform(0, 20)
        clock = (start + np.arange(count)[:, None] + [0.0, 1.0]).astype(np.float32)
        captions.append((Caption(" ".join(spoken), float(clock[0, 0]), float(clock[-1, 1]), clock),))
    return replace(toy_pairs(many, words=False), captions=tuple(captions))


def source(folder, most, stop_words=True):
    text = TextConfig(
        "bert", 8, "cls", network=BERT.network, max_tokens=most, source="wordpiece:.", stop_words=stop_words
    )
    return open_tokenizer(text, folder)


@pytest.mark.parametrize("most", [4, 9, 60])
@pytest.mark.parametrize("stop_words", [True, False])
def test_a_segment_is_the_words_joined_and_encoded(folder, most, stop_words):
    pairs, length = transcribed(), 6
    encoder = source(folder, most, stop_words)
    held = TranscriptStore(split_transcripts(pairs, encoder), CPU, length, most)
    rows = [[word for word in text.split() if stop_words or encoder_keeps(word)] for text in pairs.texts]
    for number, words in enumerate(rows):
        for first in range(max(1, len(words) - length + 1)):
            tokens, _ = held.segments(torch.tensor([number]), torch.tensor([first]))
            want, mask = encoder.encode([" ".join(words[first : first + length])])
            assert tokens.tokens[0][tokens.mask[0]].tolist() == want[0][mask[0]].tolist()
            assert not tokens.tokens[0][~tokens.mask[0]].any()


def encoder_keeps(word):
    from wordreel.lab.models.text.tokenizers import without_stop_words

    return without_stop_words(word) != "."


def test_segments_are_drawn_evenly_and_know_their_time(folder):
    pairs, length = transcribed(), 6
    held = TranscriptStore(split_transcripts(pairs, source(folder, 30)), CPU, length)
    torch.manual_seed(0)
    number = 3  # 40 words: 35 segments
    _, middles = held.sample(torch.full((7000,), number))
    begun = middles - length / 2 - pairs.captions[number][0].start
    assert begun.round().unique().tolist() == list(range(35))
    assert (torch.bincount(begun.round().long()) - 200).abs().max() < 70
    _, whole = held.sample(torch.tensor([1]))  # fewer words than a segment: all of them
    assert float(whole) == pytest.approx(pairs.captions[1][0].start + 2.5, abs=1e-4)


def test_late_words_are_left_out(folder):
    pairs = transcribed()
    number, caption = 3, pairs.captions[3][0]
    spoken = split_transcripts(pairs, source(folder, 30), until=caption.start + 9.5)
    assert len(spoken.words[number]) == 10
    assert np.isfinite(spoken.times[number]).all()
    none = split_transcripts(pairs, source(folder, 30), until=1e-9)
    assert not none.words[number]
    tokens, middles = TranscriptStore(none, CPU, 6).sample(torch.tensor([number]))
    assert tokens.mask.sum() == 3  # [CLS] . [SEP]
    assert torch.isnan(middles).all()


def test_words_without_times_share_the_span_or_have_none():
    spread = Caption("a b c d", 2.0, 4.0).word_times(4)
    assert spread.tolist() == [[2.0, 2.5], [2.5, 3.0], [3.0, 3.5], [3.5, 4.0]]
    assert np.isnan(Caption("a b").word_times(2)).all()


def test_a_model_is_trained_on_transcripts(folder, tmp_path):
    recipe = toy_recipe("mmt", epochs=2, batch=4, segment_words=5, window=8.0)
    text = replace(BERT, source="wordpiece:.", max_tokens=9)
    recipe = replace(recipe, model=replace(CONFIGS["mmt"], text=text))
    data = prepare(recipe, transcribed(), transcribed(1), folder=folder)
    first = train(recipe, data, tmp_path / "one", device="cpu")
    again = train(recipe, data, tmp_path / "two", device="cpu")
    assert first.history[-1]["loss"] == again.history[-1]["loss"]
    assert first.figures is not None
    frozen = replace(recipe, model=replace(recipe.model, text=replace(text, frozen=True)))
    vectors = replace(recipe, model=replace(recipe.model, text=replace(text, words="vectors", network=None)))
    for wrong in (frozen, vectors):
        with pytest.raises(TrainingError, match=r"model\.text\.frozen=false"):
            prepare(wrong, transcribed(), folder=folder)
