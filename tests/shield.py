"""A home folder for the tests: what the user has installed, configured or cached does not reach them.

Only the weights that the package index serves are the user's own, linked one by one: they are pinned by hash.
So is the cache of what is computed from weights, whose files are named after all that they depend on.
"""

import os
import shutil
import tempfile
from pathlib import Path

FORGOTTEN = (
    "HF_HUB_CACHE",
    "HF_TOKEN",
    "HUGGINGFACE_HUB_CACHE",
    "WORDREEL_INDEX_PASSWORD",
    "WORDREEL_LIBRARY",
)


class Shield:
    """While raised, this process and those that it starts have a temporary home and weight store."""

    def __init__(self) -> None:
        from wordreel.runtime import weight_table
        from wordreel.runtime.store import default_root

        user = default_root()
        self.home = Path(tempfile.mkdtemp(prefix="wordreel-home-"))
        weights = self.home / "weights"
        weights.mkdir()
        (user / "derived").mkdir(parents=True, exist_ok=True)
        for name in ("derived", *weight_table.PACKAGED):
            if (user / name).is_dir():
                (weights / name).symlink_to((user / name).absolute())
        self.environment = dict(os.environ)
        for name in FORGOTTEN:
            os.environ.pop(name, None)
        os.environ |= {
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "huggingface"),
            "WORDREEL_WEIGHTS": str(weights),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
        }

    def lower(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        shutil.rmtree(self.home, ignore_errors=True)
