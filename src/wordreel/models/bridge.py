"""Search without training: words and videos meet in what the experts' classifiers recognise.

A classifier with classes c and logits z(v) for a video, and a sentence encoder with unit vectors t_c for the
class names and t_q for the query, give one expert of the mixture:

    video   x = unit(Uᵀ (z − mean z))                     evidence for each class
    query   y = unit(Uᵀ (p − mean p)),  p = softmax_c(⟨t_q, t_c⟩ / τ)      classes the words speak of

U holds the 384 strongest left singular vectors of the classifier's weights: it brings 1000 or 400 classes to
one common length and keeps almost all of what can vary. Comparing in the space of classes and not in that of
sentences (a video as the mean of its class names' vectors, as ConSE has it, Norouzi et al. 2013) lets the
softmax sharpen the query, which finds more (see `results/`).

Speech and on-screen text are already sentences: their vectors are compared with t_q as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType

import numpy as np

from wordreel.experts import registry
from wordreel.experts.appearance import SUPERSEDED
from wordreel.experts.base import Recogniser
from wordreel.experts.class_head import ClassHead
from wordreel.models.base import EmbeddedClip, Evidence, Explanation, Model
from wordreel.models.pooling import overlap, rows_in, words_in
from wordreel.runtime.array_cache import cached_arrays
from wordreel.runtime.sentences import DIM, SentenceEncoder
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track
from wordreel.util.lru_cache import LRUCache

VERSION = 1  # raise it when any embedding would change
TEMPERATURE = 0.08  # τ
WEIGHTS = {"appearance": 1.0, "motion": 1.0, "sound": 0.2, "speech": 0.8, "ocr": 0.4}
"""How much each expert counts, chosen on validation videos."""

SENTENCES = ("speech", "ocr")
AT_ONCE = 256  # texts
CACHED_QUERIES = 128  # whose classes are cached while their hits are explained: 1 MiB


@dataclass(frozen=True)
class ClassSpace:
    """One classifier's classes as a space of 384 dimensions."""

    recogniser: Recogniser
    phrases: tuple[Float32, ...]  # each [classes, 384]: unit vectors of one wording of every class
    basis: Float32  # U, [classes, 384]; columns past the number of classes are zero

    def video(self, logits: Float32) -> Float32:
        return unit((logits - logits.mean()) @ self.basis)

    def queries(self, chances: Float32) -> Float32:
        """y `[texts, 384]` from p `[texts, classes]`."""
        rows = (chances - chances.mean(axis=1, keepdims=True)) @ self.basis
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)

    def chances(self, sentences: Float32) -> Float32:
        """p `[texts, classes]`: how much the words of `sentences [texts, 384]` speak of each class, the mean
        over the wordings."""
        chances = softmax(sentences @ self.phrases[0].T / TEMPERATURE)
        for wording in self.phrases[1:]:
            chances += softmax(sentences @ wording.T / TEMPERATURE)
        return np.asarray(chances / len(self.phrases), np.float32)

    def best(self, chances: Float32, shown: Float32) -> list[str]:
        """The class that both the words speak of and the video shows, for `shown [n, classes]`."""
        return [self.recogniser.names[number] for number in (chances * shown).argmax(axis=1).tolist()]


class Bridge(Model):
    """The zero-training joint embedding."""

    name = "bridge"
    experts: tuple[str, ...] = tuple(WEIGHTS)
    dim = DIM
    track_experts: tuple[str, ...] = experts
    outdated_tracks = MappingProxyType({"appearance": SUPERSEDED})
    expert_weights: tuple[float, ...] = tuple(WEIGHTS.values())

    def __init__(self, store: WeightStore, experts: Sequence[str] = tuple(WEIGHTS)) -> None:
        """`experts` are some of those in `WEIGHTS`, for a model that has rows of its own beside them."""
        self.experts = self.track_experts = tuple(expert for expert in WEIGHTS if expert in experts)
        self.expert_weights = tuple(WEIGHTS[expert] for expert in self.experts)
        self._store = store
        self._encoder = SentenceEncoder(store)
        self._chances = LRUCache[str, dict[str, Float32]](CACHED_QUERIES)

    @cached_property
    def fingerprint(self) -> str:
        weights = {expert: WEIGHTS[expert] for expert in self.experts}
        parts = [self.name, str(VERSION), repr((TEMPERATURE, weights)), self._encoder.fingerprint]
        parts += [space.recogniser.fingerprint for space in self._spaces.values()]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Each clip's mean logits or mean sentence vector, weighted by the time rows share with the clip."""
        vectors = np.zeros((len(clips), len(self.experts), DIM), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        for row, expert in enumerate(self.experts):
            if expert not in tracks:
                continue
            rows, times = self._rows(expert, tracks[expert])
            for number, clip in enumerate(clips):
                if (mean := clip_mean(rows, times, clip)) is not None:
                    vectors[number, row] = self._vector(expert, mean)
                    available[number, row] = True
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        sentences = self._encoder.encode(list(texts))
        weights = np.array(self.expert_weights, np.float32)
        vectors = np.empty((len(texts), len(self.experts), DIM), np.float32)
        for start in range(0, len(texts), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            chances = self._class_chances(texts[some], sentences[some])
            for row, expert in enumerate(self.experts):
                sentence = expert in SENTENCES
                vectors[some, row] = (
                    sentences[some] if sentence else self._spaces[expert].queries(chances[expert])
                )
        return [QueryEmbedding(own, weights, text) for own, text in zip(vectors, texts, strict=True)]

    def _class_chances(self, texts: Sequence[str], sentences: Float32) -> dict[str, Float32]:
        """How much the words speak of each class: a query's vector is made of it, and every hit is explained
        with it."""
        chances = {expert: space.chances(sentences) for expert, space in self._spaces.items()}
        for row, text in enumerate(texts[-CACHED_QUERIES:], start=max(0, len(texts) - CACHED_QUERIES)):
            self._chances.put(text, {expert: own[row] for expert, own in chances.items()})
        return chances

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """The class or the line that fits the words best, per expert that has something in this clip."""
        sentence = self._encoder.encode([query.text])[0]
        explanation: Explanation = {}
        for expert in self.experts:
            if expert not in tracks:
                continue
            if expert in SENTENCES:
                if (line := best_line(tracks[expert], clip, sentence)) is not None:
                    explanation[expert] = line
            elif (mean := self._mean(expert, tracks[expert], clip)) is not None:
                chances = self._cached_chances(query.text, sentence)[expert]
                shown = above_mean(mean[None])
                explanation[expert] = (self._spaces[expert].best(chances, shown)[0], None)
        return explanation

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        classes: list[dict[str, Float32]] = [{} for _ in clips]
        for row, expert in enumerate(self.experts):
            if expert in SENTENCES:
                continue
            for number, logits in self._logits(row, expert, clips).items():
                classes[number][expert] = above_mean(logits)
        return [
            Evidence(one.clip, rows_in(one.tracks, SENTENCES, one.clip), known)
            for one, known in zip(clips, classes, strict=True)
        ]

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        """`explain` for each clip, expert by expert for all of them."""
        sentence = self._encoder.encode([query.text])[0]
        chances = self._cached_chances(query.text, sentence)
        explanations: list[Explanation] = [{} for _ in evidence]
        for expert in self.experts:
            if expert in SENTENCES:
                for one, explanation in zip(evidence, explanations, strict=True):
                    line = best_line(one.tracks[expert], one.clip, sentence) if expert in one.tracks else None
                    if line is not None:
                        explanation[expert] = line
                continue
            known = [number for number, one in enumerate(evidence) if expert in one.classes]
            if known:
                shown = np.stack([evidence[number].classes[expert] for number in known])
                names = self._spaces[expert].best(chances[expert], shown)
                for number, name in zip(known, names, strict=True):
                    explanations[number][expert] = (name, None)
        return explanations

    def _logits(self, row: int, expert: str, clips: Sequence[EmbeddedClip]) -> dict[int, Float32]:
        """The logits of an expert's classes, up to their mean and length, of each clip that it knows.

        Those of a linear classifier come from the mean of a track's rows. Another one would have to see every
        row; its logits come from the embedding instead, which leaves few directions out: U x ~ z − mean z.
        """
        space = self._spaces[expert]
        if not isinstance(space.recogniser, ClassHead):
            heard = [number for number, one in enumerate(clips) if one.vectors[row].any()]
            vectors = [clips[number].vectors[row] for number in heard]
            return dict(zip(heard, np.stack(vectors) @ space.basis.T, strict=True)) if heard else {}
        means = {
            number: mean
            for number, one in enumerate(clips)
            if (track := one.tracks.get(expert)) is not None
            and (mean := clip_mean(track.values, track.times, one.clip)) is not None
        }
        if not means:
            return {}
        logits = np.stack(list(means.values())) @ space.recogniser.weight.T + space.recogniser.bias
        return dict(zip(means, logits.astype(np.float32), strict=True))

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """The class that both clips show, or the other clip's line that is closest to this one's."""
        common: Explanation = {}
        for expert in self.experts:
            if expert not in tracks or expert not in other_tracks:
                continue
            theirs = other_tracks[expert]
            one, two = self._mean(expert, tracks[expert], clip), self._mean(expert, theirs, other_clip)
            if one is None or two is None:
                continue
            if expert in SENTENCES:
                if (line := best_line(theirs, other_clip, one)) is not None:
                    common[expert] = line
            else:
                both = np.maximum(one - one.mean(), 0) * np.maximum(two - two.mean(), 0)
                common[expert] = (self._spaces[expert].recogniser.names[int(np.argmax(both))], None)
        return common

    def _cached_chances(self, text: str, sentence: Float32) -> dict[str, Float32]:
        known = self._chances.get(text)
        if known is None:
            known = {expert: own[0] for expert, own in self._class_chances([text], sentence[None]).items()}
        return known

    def _mean(self, expert: str, track: Track, clip: Clip) -> Float32 | None:
        """An expert's logits or sentence vectors over a clip, weighted by time; None where it has none."""
        if expert not in SENTENCES and isinstance(head := self._spaces[expert].recogniser, ClassHead):
            # Linear: the mean of the logits is the logits of the mean, and that is one row instead of many.
            mean = clip_mean(track.values, track.times, clip)
            return None if mean is None else np.asarray(head.weight @ mean + head.bias, np.float32)
        return clip_mean(*self._rows(expert, track), clip)

    def _rows(self, expert: str, track: Track) -> tuple[Float32, np.ndarray]:
        if expert in SENTENCES:
            return track.values, track.times
        labels = self._spaces[expert].recogniser.labels(track)
        return labels.scores, labels.times

    def _vector(self, expert: str, mean: Float32) -> Float32:
        return unit(mean) if expert in SENTENCES else self._spaces[expert].video(mean)

    @cached_property
    def _spaces(self) -> dict[str, ClassSpace]:
        wanted = [expert for expert in self.experts if expert not in SENTENCES]
        return {expert: self._space(expert, registry.recogniser(expert, self._store)) for expert in wanted}

    def _space(self, expert: str, recogniser: Recogniser) -> ClassSpace:
        wordings = wordings_of(expert, recogniser.names)
        facts = repr((self._encoder.fingerprint, recogniser.fingerprint, wordings))
        key = f"classes-{expert}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"

        def make() -> dict[str, Float32]:
            phrases = {str(number): self._encoder.encode(w) for number, w in enumerate(wordings)}
            return {**phrases, "basis": strongest(recogniser.weight)}

        arrays = cached_arrays(self._store.root, key, make)
        phrases = tuple(arrays[str(number)] for number in range(len(wordings)))
        return ClassSpace(recogniser, phrases, arrays["basis"])


def strongest(weight: Float32) -> Float32:
    """U `[classes, 384]`: the strongest left singular vectors of `weight [classes, …]` less its mean row."""
    vectors = np.linalg.svd(weight - weight.mean(axis=0), full_matrices=False)[0][:, :DIM]
    basis = np.zeros((len(weight), DIM), np.float32)
    basis[:, : vectors.shape[1]] = vectors
    return basis


def wordings_of(expert: str, names: Sequence[str]) -> list[list[str]]:
    """The ways in which the classes are put into words; a query is compared with all of them."""
    if expert == "motion":
        return [list(names), [f"a person is {name}" for name in names]]
    if expert == "appearance":
        kinds = imagenet_kinds()
        return [list(names), [f"{name}, {kinds[i]}" if i in kinds else name for i, name in enumerate(names)]]
    return [list(names)]


def imagenet_kinds() -> dict[int, str]:
    """ImageNet's animals by class number, in a caption writer's words: a "Saluki" is "a dog"."""
    text = (files("wordreel.models") / "data" / "imagenet_kinds.tsv").read_text(encoding="utf-8")
    kinds: dict[int, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            first, last, words = line.split("\t")
            kinds |= dict.fromkeys(range(int(first), int(last) + 1), words)
    return kinds


def best_line(track: Track, clip: Clip, sentence: Float32) -> tuple[str, tuple[float, float]] | None:
    """The line of a clip that is closest to a sentence, and its time; None where the clip has none."""
    shares = overlap(track.times, clip)
    if not shares.any():
        return None
    at = int(np.argmax(np.where(shares > 0, track.values @ sentence, -np.inf)))
    span = (float(track.times[at, 0]), float(track.times[at, 1]))
    return f"“{words_in(track, *span)}”", span


def clip_mean(rows: Float32, times: np.ndarray, clip: Clip) -> Float32 | None:
    """The mean of the rows of a clip, weighted by the time they share with it; None where there are none."""
    shares = overlap(times, clip)
    return (shares @ rows / shares.sum()).astype(np.float32) if shares.any() else None


def above_mean(logits: Float32) -> Float32:
    """How much a video shows of each class: its logits above their mean, along the last dimension."""
    return np.asarray(np.maximum(logits - logits.mean(axis=-1, keepdims=True), 0), np.float32)


def softmax(x: Float32) -> Float32:
    """exp(x) / Σ exp(x), over the last dimension."""
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Float32 = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def unit(x: Float32) -> Float32:
    """x / ‖x‖; zero stays zero."""
    length = float(np.linalg.norm(x))
    return x / np.float32(length) if length > 0 else x
