"""Signs that an expert or a model is broken although it answers: values that cannot be right.

Nothing here needs to know what the values mean. A result that is only suspicious is stored and reported: a
black film looks the same from start to end.
"""

from __future__ import annotations

import numpy as np

from wordreel.types import Bool, Float32, Track

MIN_ROWS = 8  # of a track that could show a change
MIN_SHOTS = 3  # of a video whose picture changes
MIN_VECTORS = 8  # that could differ
NORM_TOLERANCE = 0.02  # of embeddings of length 1
SAME_COSINE = 0.9999  # mean, from which on embeddings are all the same


def track_fault(track: Track, pictures: bool = False, shots: int = 0) -> str:
    """Say what is wrong with a track; empty if nothing is.

    Args:
        track: The track.
        pictures: Whether its rows describe frames, which differ from shot to shot; words on them may not.
        shots: The shots of its video; 0 if they are not known.

    >>> times = np.zeros((2, 2))
    >>> track_fault(Track(np.zeros((2, 3), np.float32), times))
    'nothing but zeros'
    >>> track_fault(Track(np.eye(2, 3, dtype=np.float32), times))
    ''
    """
    values = track.values
    if not np.isfinite(values).all():
        return "values that are not finite"
    if not values.any():
        return "nothing but zeros"
    if track.dim > 1 and (values == values.flat[0]).all():
        return "one constant"
    changes = pictures and not track.words and shots >= MIN_SHOTS and len(track) >= MIN_ROWS
    if changes and (values == values[0]).all():
        return f"the same row at {len(track)} times in {shots} shots"
    return ""


def unusable(vectors: Float32) -> Bool:
    """Return which of `vectors [..., dim]` hold a value that is not finite, as `[...]`."""
    return np.asarray(~np.isfinite(vectors).all(axis=-1))


def embeddings_fault(vectors: Float32) -> tuple[str, int]:
    """Say what is wrong with one expert's embeddings `[n, dim]` of clips, and the first row that has it.

    The text is empty if nothing is wrong; the row is -1 where the fault is of all together.

    >>> embeddings_fault(np.float32([[1, 0], [0, 2], [0, 1]]))
    ('1 of 3 are not of length 1', 1)
    >>> embeddings_fault(np.tile(np.float32([0.6, 0.8]), (9, 1)))
    ('all 9 are nearly the same', -1)
    """
    count, lengths = len(vectors), np.linalg.norm(vectors, axis=1)
    longer = np.abs(lengths - 1) > NORM_TOLERANCE
    faults = {
        "hold values that are not finite": unusable(vectors),
        "are nothing but zeros": ~vectors.any(axis=1),
        "are constant": (vectors == vectors[:, :1]).all(axis=1) & (vectors.shape[1] > 1),
        "are not of length 1": longer & (longer.sum() < count / 2),  # there are models without a length
    }
    for what, rows in faults.items():
        if rows.any():
            return f"{int(rows.sum())} of {count} {what}", int(rows.argmax())
    if count < MIN_VECTORS:
        return "", -1
    mean = (vectors / lengths[:, None]).mean(axis=0, dtype=np.float64)
    if (float(mean @ mean) * count - 1) / (count - 1) >= SAME_COSINE:  # the mean cosine of two different rows
        return f"all {count} are nearly the same", -1
    copies = count - len(np.unique(vectors, axis=0))
    return (f"{copies} of {count} are copies of another", -1) if copies > count // 2 else ("", -1)
