"""Names of what classifiers recognise as captions, so that words which no caption used are learned too.

A video whose mean probability of a class, over the rows of an expert's track, is at least `least` gets the
class's name in a sentence. The sentence is one caption among the video's own, so it is drawn as often as one
of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.experts import registry
from wordreel.experts.base import Recogniser
from wordreel.lab.datasets.types import Caption
from wordreel.lab.training.data.pairs import Pairs
from wordreel.models.reel.class_inputs import probabilities
from wordreel.types import Float32, Track

SPOKEN = ("appearance", "motion")  # SoundNet's places are guesses, seldom what a caption would say


def with_class_captions(pairs: Pairs, library: LibraryStore, least: float) -> Pairs:
    """The pairs of a library with the names of recognised classes behind their captions."""
    known: Mapping[str, Recogniser] = {name: registry.recogniser(name) for name in SPOKEN}
    captions = []
    for content, own in zip(pairs.ids, pairs.captions, strict=True):
        said = []
        for expert, recogniser in known.items():
            track = library.track(content, expert)
            if isinstance(track, Track):
                said += class_captions(expert, recogniser, probabilities(track, recogniser), least)
        captions.append((*own, *map(Caption, said)))
    return replace(pairs, captions=tuple(captions))


def class_captions(expert: str, recogniser: Recogniser, chances: Float32, least: float) -> list[str]:
    """The sentence about the most probable class, if it is probable enough; `chances [rows, classes]`."""
    mean = chances.mean(axis=0)
    best = int(np.argmax(mean))
    if mean[best] < least:
        return []
    name = recogniser.names[best]
    if expert == "motion":
        return [f"a person is {name}"]
    return [f"a photo of {'an' if name[0].lower() in 'aeiou' else 'a'} {name}"]
