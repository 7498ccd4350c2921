"""Small random similarities of every awkward kind."""

from dataclasses import dataclass

import numpy as np

KINDS = ("cosine", "ties", "logits", "huge", "constant", "wide", "negative")


@dataclass(frozen=True)
class Case:
    bank: np.ndarray
    gallery: np.ndarray
    rows: np.ndarray
    kind: str

    @property
    def scale(self):
        return max(
            1.0, *(float(np.abs(a.astype(np.float64)).max()) for a in (self.bank, self.gallery, self.rows))
        )

    @property
    def near(self):
        """What rounding may do: float32 keeps 24 bits of the largest value."""
        return 3e-6 * self.scale


def fill(rng, shape, kind):
    if kind == "ties":
        return rng.integers(-2, 3, shape) / 4
    if kind == "logits":
        return rng.normal(25, 5, shape)
    if kind == "huge":
        return rng.choice([-1e4, 1e4, 9_990.0, 0.0, 3.0], shape)
    if kind == "constant":
        return np.broadcast_to(rng.uniform(-1, 1, (shape[0], 1)), shape).copy()
    if kind == "wide":
        return rng.normal(0, 300, shape)
    if kind == "negative":
        return rng.uniform(-1, -0.5, shape)
    return rng.uniform(-1, 1, shape)


def case(seed):
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    dtype = (np.float32, np.float64, np.float16)[seed // len(KINDS) % 3]
    m, g, q, n = (int(x) for x in rng.integers(1, 9, 4))
    if seed % 5 == 0:
        n = 1
    if seed % 11 == 0:
        m = 1
    arrays = [fill(rng, (rows, n), kind).astype(dtype) for rows in (m, g, q)]
    return Case(*arrays, kind)
