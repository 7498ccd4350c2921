"""A search that scores its items once finds, to the bit, what one that scored them twice found."""

from dataclasses import replace

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.index import exact
from wordreel.index.base import Correction
from wordreel.library.embeddings import Gallery
from wordreel.search import text_search
from wordreel.search.lexical import lexical_matches
from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.search.text_search import CANDIDATES
from wordreel.types import QueryEmbedding

DIM = 384  # so long that the order of a sum's terms shows in its last bits


@pytest.fixture
def searcher(searcher, model, monkeypatch):
    """The searcher of the small library, over vectors that nothing rounds by chance."""
    rng = np.random.default_rng(0)

    def queries(texts):
        seeds = [np.random.default_rng(list(text.encode())) for text in texts]
        return [
            QueryEmbedding(
                seed.normal(size=(2, DIM)).astype(np.float32),
                seed.random(2).astype(np.float32),
                text,
            )
            for seed, text in zip(seeds, texts, strict=True)
        ]

    monkeypatch.setattr(model, "encode", queries, raising=False)
    available = searcher.snapshot.gallery.available
    vectors = rng.normal(size=(len(searcher), 2, DIM)).astype(np.float32) / DIM**0.5 * available[..., None]
    gallery = Gallery(searcher.snapshot.gallery.ids, vectors, available)
    return replace(searcher, snapshot=replace(searcher.snapshot, gallery=gallery))


def norms(searcher):
    rng = np.random.default_rng(1)
    bias = rng.normal(size=len(searcher)).astype(np.float32) / 10
    return [
        PLAIN,
        FittedNorm("folded", Correction(bias)),
        FittedNorm("gated", Correction(bias, rng.random(len(searcher)) < 0.5)),
        FittedNorm("rescored", rescore=lambda scores, rows: scores.astype(np.float64) - bias[rows]),
    ]


def sure(scores, best):
    return np.asarray(1 / (1 + np.exp(scores[best].max() - 2 * scores)), np.float32)


def twice(searcher, text, limit, moments, norm, least):
    """The path that scores all items for their confidence, and again for every depth of the ranking."""
    query, bonus = searcher.model.encode([text])[0], lexical_matches(searcher.snapshot, text).bonus
    vectors, weights = query.vectors[None], query.weights[None]

    def plain_of(rows):
        extra = np.array([bonus.get(int(row), 0.0) for row in rows], np.float32) if bonus else np.float32(0)
        chosen = slice(None) if len(rows) == len(searcher) else rows
        return np.asarray(searcher.snapshot.index.scores(vectors, weights, chosen)[0] + extra, np.float32)

    plain = plain_of(np.arange(len(searcher)))
    confident = sure(plain, searcher.snapshot.best_rows(plain[None])[0])
    allowed = confident >= least
    extra = np.array([row for row in bonus if allowed[row]], np.int64)
    depth = 4 * limit if norm.rescore is None else max(CANDIDATES, 4 * limit)
    while True:
        found = searcher.snapshot.index.search(
            vectors, weights, min(depth, len(searcher)), allowed, norm.correction
        )
        rows = found.rows[0][found.rows[0] >= 0]
        scores = dict(zip(rows.tolist(), found.scores[0].tolist(), strict=False))
        if len(extra):
            gained = plain_of(extra)
            if norm.correction is not None and found.corrected[0]:
                gained = gained - norm.correction.bias[extra]
            scores |= dict(zip(extra.tolist(), gained.tolist(), strict=True))
        if norm.rescore is not None and scores:
            some = np.array(list(scores), np.int64)
            values = np.array(list(scores.values()), np.float32)
            scores = dict(zip(some.tolist(), norm.rescore(values[None], some)[0].tolist(), strict=True))
        chosen, seen = [], set()
        for row, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])):
            item = searcher.snapshot.items[row]
            if moments and item.whole and len(searcher.snapshot.rows(item.content)) > 1:
                continue
            if moments or item.content not in seen:
                seen.add(item.content)
                chosen.append((item.content, score, float(confident[row])))
        if len(chosen) >= limit or len(rows) < depth:
            corrected = norm.rescore is not None or bool(found.corrected[0])
            return chosen[:limit], norm.label if corrected else "none"
        depth *= 4


@pytest.mark.parametrize("block", [exact.BLOCK, 7])
def test_scoring_once_finds_the_same_to_the_bit(searcher, block, monkeypatch):
    monkeypatch.setattr(exact, "BLOCK", block)
    monkeypatch.setattr(text_search, "BLOCK", block)
    labels = set()
    for norm in norms(searcher):
        for text in ("red", "blue dogs 2", "dogs", "nothing named here"):
            for limit, moments, least in (
                (1, False, 0.0),
                (3, True, 0.0),
                (100, False, 0.4),
                (5, True, 0.45),
            ):
                expected, label = twice(searcher, text, limit, moments, norm, least)
                hits = find(
                    searcher, text, limit, moments=moments, norm=norm, confidence=sure, min_confidence=least
                )
                assert [(hit.content, hit.score, hit.confidence) for hit in hits] == expected
                assert {hit.norm for hit in hits} <= {label}
                labels.add(label)
    assert labels == {"none", "folded", "gated", "rescored"}


def test_all_items_are_scored_once(searcher, monkeypatch):
    passes = []
    plain = exact.ExactIndex._plain

    def counted(self, flat, weights, rows):
        passes.append(rows)
        return plain(self, flat, weights, rows)

    monkeypatch.setattr(exact.ExactIndex, "_plain", counted)
    for norm in norms(searcher):
        passes.clear()
        # Nearly all videos are wanted, so the ranking may have to look deeper than at first.
        find(searcher, "nothing named here", 6, norm=norm, confidence=sure)
        assert sum(isinstance(rows, slice) for rows in passes) == 1
