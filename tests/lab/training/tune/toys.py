"""A small material of the same shape as a real one: kinds of videos, and captions that name the kind."""

import numpy as np

from wordreel.lab.training.tune.heads import TextInputs
from wordreel.lab.training.tune.tune_data import TuneData, own_words
from wordreel.models.reel.own_words import ids_of, shares

DIM, TEXT, EXPERTS = 12, 10, 3
KINDS = ("zorp", "blick", "dax", "fep", "wug", "tove")


def texts_of(rng, texts, words):
    """Sentence vectors that know nothing of the words."""
    ids = ids_of(texts, {word: place for place, word in enumerate(words)})
    x = rng.normal(size=(len(texts), TEXT)).astype(np.float32)
    deep = rng.normal(size=(len(texts), DIM)).astype(np.float32)
    return TextInputs(x, deep, ids, shares(ids), unit(rng.normal(size=(len(texts), EXPERTS - 1, DIM))))


def unit(x):
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def toy_data(captioned=36, others=8, seed=0, shuffled=False):
    """Two items a video, every seventh without the learned row; three captions a video."""
    rng = np.random.default_rng(seed)
    videos = captioned + others
    kind = np.arange(videos) % len(KINDS)
    ideas = 3 * rng.normal(size=(len(KINDS), DIM))
    named = rng.permutation(kind[:captioned]) if shuffled else kind[:captioned]
    texts = [f"{KINDS[k]} seen {n}" for k in named for n in ("here", "there", "again")]
    owner = np.repeat(np.arange(captioned), 3)
    words = own_words(texts, owner)
    video = np.repeat(np.arange(videos), 2)
    available = np.ones((2 * videos, EXPERTS), bool)
    available[1::7, 0] = False
    available[3::5, 1] = False
    tower = {
        "caption.straight.weight": rng.normal(size=(DIM, TEXT)).astype(np.float32),
        "caption.straight.bias": rng.normal(size=DIM).astype(np.float32),
        "out.weight": rng.normal(size=(DIM, DIM)).astype(np.float32),
        "out.bias": rng.normal(size=DIM).astype(np.float32),
    }
    return TuneData(
        tower=tower,
        weights=np.array([1.0, 0.3, 0.2], np.float32),
        read=(ideas[kind[video]] + 0.5 * rng.normal(size=(2 * videos, DIM))).astype(np.float32),
        others=unit(rng.normal(size=(2 * videos, EXPERTS - 1, DIM))),
        available=available,
        video=video,
        whole=2 * np.arange(videos),
        captioned=captioned,
        texts=texts_of(rng, texts, words),
        owner=owner,
        words=words,
        bonus=(np.array([0, 4]), np.array([3, 5]), np.array([0.5, 0.25], np.float32)),
        everyday=texts_of(rng, [f"everyday {n}" for n in range(30)], words),
    )
