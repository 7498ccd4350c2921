"""What the experts' classifiers recognise, as inputs of the default model beside the features.

The input "NAME-classes" has one row of probabilities for each row of the expert's track:

    p = softmax(scores of the recogniser)

They are computed from stored tracks; nothing new is extracted. Recipes choose them by `model.experts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from wordreel.experts import registry
from wordreel.experts.base import Recogniser
from wordreel.models.bridge import softmax
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32, Track

SUFFIX = "-classes"


def track_of(name: str) -> str:
    """The expert whose track an input reads: its own, or that of the classes.

    >>> track_of("motion-classes"), track_of("motion")
    ('motion', 'motion')
    """
    return name.removesuffix(SUFFIX)


def is_class_input(name: str) -> bool:
    return name.endswith(SUFFIX) and track_of(name) in registry.RECOGNISING


def recognisers(names: Iterable[str], store: WeightStore | None = None) -> dict[str, Recogniser]:
    """The classifier of each class input among `names`, by the input's name."""
    return {name: registry.recogniser(track_of(name), store) for name in names if is_class_input(name)}


def class_track(track: Track, recogniser: Recogniser) -> Track:
    """A track of the probabilities of the classes."""
    return Track(np.asarray(probabilities(track, recogniser), np.float32), track.times)


def probabilities(track: Track, recogniser: Recogniser) -> Float32:
    """`[rows, classes]`"""
    return softmax(recogniser.labels(track).scores)


def with_class_inputs(tracks: Mapping[str, Track], known: Mapping[str, Recogniser]) -> dict[str, Track]:
    """The tracks of a video, and those of the class inputs that can be computed from them."""
    derived = {
        name: class_track(tracks[track_of(name)], recogniser)
        for name, recogniser in known.items()
        if track_of(name) in tracks
    }
    return {**tracks, **derived}
