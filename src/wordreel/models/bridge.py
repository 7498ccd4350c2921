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
from weakref import ReferenceType, ref

import numpy as np

from wordreel.experts import registry
from wordreel.experts.base import Recogniser
from wordreel.experts.class_head import ClassHead
from wordreel.lru_cache import LRUCache
from wordreel.models.base import EmbeddedClip, Explanation, Model
from wordreel.nets.sentences import DIM, SentenceEncoder
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track
from wordreel.weights.array_cache import cached_arrays
from wordreel.weights.store import WeightStore

VERSION = 1  # raise it when any embedding would change
TEMPERATURE = 0.08  # τ
WEIGHTS = {"appearance": 1.0, "motion": 1.0, "sound": 0.2, "speech": 0.8, "ocr": 0.4}
"""How much each expert counts, chosen on validation videos."""

SENTENCES = ("speech", "ocr")
CACHED_CLIPS = 8192  # clips, times experts, whose logits are cached: some 20 MiB
CACHED_QUERIES = 64  # queries, times experts, whose classes are cached while their hits are explained


@dataclass(frozen=True)
class ClassSpace:
    """One classifier's classes as a space of 384 dimensions."""

    recogniser: Recogniser
    phrases: tuple[Float32, ...]  # each [classes, 384]: unit vectors of one wording of every class
    basis: Float32  # U, [classes, 384]; columns past the number of classes are zero

    def video(self, logits: Float32) -> Float32:
        return unit((logits - logits.mean()) @ self.basis)

    def query(self, chances: Float32) -> Float32:
        return unit((chances - chances.mean()) @ self.basis)

    def logits(self, vectors: Sequence[Float32]) -> list[Float32]:
        """`video` undone: logits less their mean, up to their length."""
        return list(np.stack(vectors) @ self.basis.T) if vectors else []

    def chances(self, sentence: Float32) -> Float32:
        """p: how much the words speak of each class, the mean over the wordings."""
        wordings = [softmax(wording @ sentence / TEMPERATURE) for wording in self.phrases]
        return np.asarray(np.mean(wordings, axis=0), np.float32)

    def best(self, chances: Float32, logits: Float32) -> str:
        """The class that both the words speak of and the video shows evidence for."""
        evidence = np.maximum(logits - logits.mean(), 0)
        return self.recogniser.names[int(np.argmax(chances * evidence))]


class Bridge(Model):
    """The zero-training joint embedding."""

    name = "bridge"
    experts: tuple[str, ...] = tuple(WEIGHTS)
    dim = DIM
    track_experts: tuple[str, ...] = experts
    expert_weights: tuple[float, ...] = tuple(WEIGHTS.values())

    def __init__(self, store: WeightStore, experts: Sequence[str] = tuple(WEIGHTS)) -> None:
        """`experts` are some of those in `WEIGHTS`, for a model that has rows of its own beside them."""
        self.experts = self.track_experts = tuple(expert for expert in WEIGHTS if expert in experts)
        self.expert_weights = tuple(WEIGHTS[expert] for expert in self.experts)
        self._store = store
        self._encoder = SentenceEncoder(store)
        self._chances = LRUCache[tuple[str, str], Float32](CACHED_QUERIES)
        self._means = LRUCache[tuple[str, Clip], tuple[ReferenceType[Track], Float32 | None]](CACHED_CLIPS)

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
                shares = overlap(times, clip)
                if shares.any():
                    mean = shares @ rows / shares.sum()
                    vectors[number, row] = self._vector(expert, mean.astype(np.float32))
                    available[number, row] = True
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        weights = np.array(self.expert_weights, np.float32)
        return [
            QueryEmbedding(
                np.stack([self._query(expert, text, sentence) for expert in self.experts]), weights, text
            )
            for text, sentence in zip(texts, self._encoder.encode(list(texts)), strict=True)
        ]

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """The class or the line that fits the words best, per expert that has something in this clip."""
        return self._explain(query, tracks, clip, {})

    def _explain(
        self,
        query: QueryEmbedding,
        tracks: Mapping[str, Track],
        clip: Clip,
        evidence: Mapping[str, Float32],
    ) -> Explanation:
        """`explain`; `evidence` is that for each class, of experts whose tracks need not be read."""
        sentence = self._encoder.encode([query.text])[0]
        explanation: Explanation = {}
        for expert in self.experts:
            if expert in evidence:
                chances = self._cached_chances(expert, query.text, sentence)
                explanation[expert] = (self._spaces[expert].best(chances, evidence[expert]), None)
                continue
            if expert not in tracks:
                continue
            track = tracks[expert]
            if expert in SENTENCES:
                rows, times = track.values, track.times
                shares = overlap(times, clip)
                if not shares.any():
                    continue
                at = int(np.argmax(np.where(shares > 0, rows @ sentence, -np.inf)))
                span = (float(times[at, 0]), float(times[at, 1]))
                explanation[expert] = (f"“{words_in(track, *span)}”", span)
            elif (mean := self._cached_mean(expert, track, clip)) is not None:
                chances = self._cached_chances(expert, query.text, sentence)
                explanation[expert] = (self._spaces[expert].best(chances, mean), None)
        return explanation

    def explain_all(self, query: QueryEmbedding, clips: Sequence[EmbeddedClip]) -> list[Explanation]:
        """`explain` for each clip, with the logits of all of them from one product per classifier.

        A classifier that is not linear would have to see every row of a track. Its evidence comes from the
        embedding instead: U x is z − mean z, but for its length and the few directions that U leaves out.
        """
        evidence: list[dict[str, Float32]] = [{} for _ in clips]
        for row, expert in enumerate(self.experts):
            if expert in SENTENCES:
                continue
            space = self._spaces[expert]
            if isinstance(space.recogniser, ClassHead):
                self._remember_means(
                    space.recogniser,
                    expert,
                    [(one.tracks[expert], one.clip) for one in clips if expert in one.tracks],
                )
                continue
            heard = [number for number, one in enumerate(clips) if one.vectors[row].any()]
            vectors = [clips[number].vectors[row] for number in heard]
            for number, logits in zip(heard, space.logits(vectors), strict=True):
                evidence[number][expert] = logits
        return [
            self._explain(query, one.tracks, one.clip, known)
            for one, known in zip(clips, evidence, strict=True)
        ]

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
                values, times = self._rows(expert, theirs)
                at = int(np.argmax(np.where(overlap(times, other_clip) > 0, values @ one, -np.inf)))
                span = (float(times[at, 0]), float(times[at, 1]))
                common[expert] = (f"“{words_in(theirs, *span)}”", span)
            else:
                both = np.maximum(one - one.mean(), 0) * np.maximum(two - two.mean(), 0)
                common[expert] = (self._spaces[expert].recogniser.names[int(np.argmax(both))], None)
        return common

    def _cached_chances(self, expert: str, text: str, sentence: Float32) -> Float32:
        """How much the words speak of each class: a query's vector is made of it, and every hit is explained
        with it."""
        known = self._chances.get((expert, text))
        if known is None:
            known = self._spaces[expert].chances(sentence)
            self._chances.put((expert, text), known)
        return known

    def _cached_mean(self, expert: str, track: Track, clip: Clip) -> Float32 | None:
        """`_mean`, cached for as long as the track is: good videos come up again and again."""
        known = self._means.get((expert, clip))
        if known is None or known[0]() is not track:
            known = (ref(track), self._mean(expert, track, clip))
            self._means.put((expert, clip), known)
        return known[1]

    def _remember_means(self, head: ClassHead, expert: str, clips: Sequence[tuple[Track, Clip]]) -> None:
        """Cache `_mean` of several clips, which a linear classifier can take together."""
        new: dict[Clip, tuple[Track, Float32]] = {}
        for track, clip in clips:
            known = self._means.get((expert, clip))
            if known is None or known[0]() is not track:
                shares = overlap(track.times, clip)
                if shares.any():
                    new[clip] = (track, (shares @ track.values / shares.sum()).astype(np.float32))
        if len(new) < 2:
            return
        logits = np.stack([mean for _, mean in new.values()]) @ head.weight.T + head.bias
        for (clip, (track, _)), row in zip(new.items(), logits.astype(np.float32), strict=True):
            self._means.put((expert, clip), (ref(track), row.copy()))

    def _mean(self, expert: str, track: Track, clip: Clip) -> Float32 | None:
        """An expert's logits or sentence vectors over a clip, weighted by time; None where it has none."""
        if expert not in SENTENCES and isinstance(head := self._spaces[expert].recogniser, ClassHead):
            # Linear: the mean of the logits is the logits of the mean, and that is one row instead of many.
            shares = overlap(track.times, clip)
            if not shares.any():
                return None
            mean = (shares @ track.values / shares.sum()).astype(np.float32)
            return np.asarray(head.weight @ mean + head.bias, np.float32)
        rows, times = self._rows(expert, track)
        shares = overlap(times, clip)
        return (shares @ rows / shares.sum()).astype(np.float32) if shares.any() else None

    def _query(self, expert: str, text: str, sentence: Float32) -> Float32:
        if expert in SENTENCES:
            return sentence
        return self._spaces[expert].query(self._cached_chances(expert, text, sentence))

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


def words_in(track: Track, start: float, end: float) -> str:
    """The words spoken or on screen between two times, as one line."""
    return " ".join(words.text for words in track.words if words.start < end and words.end > start)


def overlap(times: np.ndarray, clip: Clip) -> Float32:
    """Seconds that each of `times [n, 2]` shares with the clip; in a picture every row counts the same.

    >>> overlap(np.array([[0.0, 2.0], [2.0, 4.0]]), Clip("", 1.0, 2.5)).tolist()
    [1.0, 0.5]
    """
    if clip.whole:
        return np.ones(len(times), np.float32)
    shared = np.minimum(times[:, 1], clip.end) - np.maximum(times[:, 0], clip.start)
    return np.asarray(np.maximum(shared, 0), np.float32)


def softmax(x: Float32) -> Float32:
    """exp(x) / Σ exp(x), over the last dimension."""
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Float32 = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def unit(x: Float32) -> Float32:
    """x / ‖x‖; zero stays zero."""
    length = float(np.linalg.norm(x))
    return x / np.float32(length) if length > 0 else x
