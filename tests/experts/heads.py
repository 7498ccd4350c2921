"""Random heads of the small eyes."""

import numpy as np


def random_head(hidden=16, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    shapes = {"w1": (hidden, 1280), "b1": (hidden,), "w2": (512, hidden), "b2": (512,), "skip": (512, 1280)}
    return {
        name: (rng.normal(size=shape) * shape[-1] ** -0.5).astype(dtype) for name, shape in shapes.items()
    }
