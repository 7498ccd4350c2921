"""TeachText's teachers: models with other text encoders, whose similarities a student is to reproduce.

A teacher's embeddings of all training videos and captions are computed once; a step takes the rows of its
batch and multiplies them. Published teachers come as embeddings, with the mixture weights inside those of
the captions: their similarity is the plain sum over experts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.datasets.trees.teachtext import TeachTextTree
from wordreel.lab.models.batch import QueryEmbeddings, VideoEmbeddings, similarity
from wordreel.lab.training.data.pairs import Pairs
from wordreel.retrieval.ranks import ranks_of
from wordreel.types import Bool

BLOCK = 1024  # captions ranked at once


@dataclass(frozen=True)
class Teacher:
    """A trained model with what it made of the training data."""

    videos: VideoEmbeddings  # [videos, experts, dim]
    queries: QueryEmbeddings  # [captions, experts, dim]
    plain: bool = False  # the sum over experts, not the mean over available ones

    def similarities(self, videos: Tensor, captions: Tensor) -> Tensor:
        """Return similarities `[captions, videos]` of those with these numbers."""
        query_embeddings = QueryEmbeddings(self.queries.vectors[captions], self.queries.weights[captions])
        video_embeddings = VideoEmbeddings(self.videos.vectors[videos], self.videos.available[videos])
        if self.plain:
            return query_embeddings.vectors.flatten(1) @ video_embeddings.vectors.flatten(1).T
        return similarity(query_embeddings, video_embeddings)

    def to(self, device: torch.device) -> Teacher:
        """Return the teacher with its embeddings on a device."""
        videos = VideoEmbeddings(*(x.to(device) for x in self.videos))
        return Teacher(videos, QueryEmbeddings(*(x.to(device) for x in self.queries)), self.plain)


@dataclass(frozen=True)
class Teachers:
    """Several teachers over the same videos and captions."""

    each: tuple[Teacher, ...]

    def similarities(self, videos: Tensor, captions: Tensor) -> Tensor:
        """Return the similarities of all teachers, `[teachers, captions, videos]`."""
        device = self.each[0].videos.vectors.device
        videos, captions = videos.to(device), captions.to(device)
        return torch.stack([teacher.similarities(videos, captions) for teacher in self.each])

    def select_captions(self, mask: Bool) -> Teachers:
        """Select only some of the captions, `mask [captions]`."""
        some = torch.from_numpy(np.flatnonzero(mask))
        chosen = (QueryEmbeddings(*(x[some] for x in teacher.queries)) for teacher in self.each)
        pairs = zip(self.each, chosen, strict=True)
        return Teachers(tuple(replace(teacher, queries=queries) for teacher, queries in pairs))

    def to(self, device: torch.device) -> Teachers:
        """Return the teachers with their embeddings on a device."""
        return Teachers(tuple(teacher.to(device) for teacher in self.each))


def from_model(folder: Path, pairs: Pairs, device: torch.device | None = None) -> Teacher:
    """Return a model as a teacher, with its own experts and its own way to read captions."""
    from wordreel.lab.models.checkpoint import load_module
    from wordreel.lab.models.text.tokenizers import open_tokenizer
    from wordreel.lab.training.data.caption_store import CaptionStore, encode
    from wordreel.lab.training.data.feature_store import FeatureStore
    from wordreel.lab.training.measure import embed_texts, embed_videos
    from wordreel.lab.training.optimisers import TrainingPrecision
    from wordreel.models.model_store import find_checkpoint

    device = device or torch.device("cpu")
    precision = TrainingPrecision("float32", device.type)
    folder = find_checkpoint(folder)
    module = load_module(folder)[0].to(device)
    text = module.config.text
    words = encode(pairs, text, None if pairs.words is not None else open_tokenizer(text, folder))
    features, texts = FeatureStore(pairs, module.config, device), CaptionStore(words, device)
    videos = embed_videos(module, features, precision)
    return Teacher(videos, embed_texts(module, texts, precision))


def from_tree(name: str, tree: TeachTextTree, pairs: Pairs) -> Teacher:
    """Return a published teacher of a TeachText tree, for pairs of the same tree in the same order."""
    lessons = [tree.teacher_embeddings(name, item) for item in pairs.ids]
    experts = sorted({expert for lesson in lessons if lesson is not None for expert in lesson.video})
    if not experts:
        raise TrainingError(f"the teacher {name} knows none of the videos of {pairs.name}")
    dim = max(len(vec) for lesson in lessons if lesson is not None for vec in lesson.video.values())
    counts = pairs.counts
    videos = np.zeros((len(pairs), len(experts), dim), np.float32)
    available = np.zeros((len(pairs), len(experts)), bool)
    texts = np.zeros((int(counts.sum()), len(experts), dim), np.float32)
    first = np.cumsum(counts) - counts
    for number, lesson in enumerate(lessons):
        if lesson is None:
            continue
        for column, expert in enumerate(experts):
            if expert in lesson.video:
                videos[number, column, : len(lesson.video[expert])] = lesson.video[expert]
                available[number, column] = True
            rows = lesson.text.get(expert)
            if rows is not None:
                if len(rows) < counts[number]:
                    raise TrainingError(
                        f"the teacher {name} knows {len(rows)} captions of {pairs.ids[number]}, which has "
                        f"{counts[number]}"
                    )
                some = slice(first[number], first[number] + counts[number])
                texts[some, column, : rows.shape[1]] = rows[: counts[number]]
    weights = torch.ones(len(texts), len(experts))
    return Teacher(
        VideoEmbeddings(torch.from_numpy(videos), torch.from_numpy(available)),
        QueryEmbeddings(torch.from_numpy(texts), weights),
        plain=True,
    )


def denoised(teachers: Teachers, pairs: Pairs, most: int) -> Bool:
    """Return `[captions]`: whether the teachers, on average, rank a caption's video among the first `most`.

    A caption that its own teachers cannot place tells little about its video. Every video keeps at least its
    best one.
    """
    owner = np.repeat(np.arange(len(pairs)), pairs.counts)
    everything = torch.arange(len(pairs))
    ranks = np.empty(len(owner))
    for start in range(0, len(owner), BLOCK):
        some = torch.arange(start, min(start + BLOCK, len(owner)))
        mean = teachers.similarities(everything, some).mean(dim=0).cpu().numpy()
        ranks[some.numpy()] = ranks_of(mean, owner[some.numpy()])
    best = np.full(len(pairs), np.inf)
    np.minimum.at(best, owner, ranks)
    return np.asarray((ranks <= most) | (ranks == best[owner]))


def masked_by_tree(tree: TeachTextTree, name: str, pairs: Pairs) -> Bool:
    """Return `[captions]` by a published mask of a TeachText tree; a video keeps all rather than none."""
    masks = []
    for item, captions in zip(pairs.ids, pairs.captions, strict=True):
        mask = tree.caption_mask(name, item)
        here = np.ones(len(captions), bool) if mask is None else np.asarray(mask[: len(captions)], bool)
        if len(here) < len(captions) or not here.any():
            here = np.ones(len(captions), bool)
        masks.append(here)
    return np.concatenate(masks)
