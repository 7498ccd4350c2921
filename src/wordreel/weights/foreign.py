"""Stand-ins for the objects of other people's programs inside a checkpoint.

Published checkpoints carry the trainer's configuration object beside the weights. Its class is neither
imported nor called here: a stand-in takes its place, swallows whatever it is given and comes out as text.
"""

from __future__ import annotations

import pickle
from typing import Any

from wordreel.errors import UnsafePickle
from wordreel.weights.torch_file import TorchReader


class Foreign:
    """Something of an unknown class, by name only."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> Foreign:
        return Foreign(self.name)

    def __setstate__(self, state: object) -> None:
        pass

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def append(self, item: object) -> None:
        pass

    def extend(self, items: object) -> None:
        pass

    def finish(self) -> str:
        return f"<{self.name}>"


class TolerantReader(TorchReader):
    """The restricted reader of checkpoints, with stand-ins where it would refuse a name."""

    def find_class(self, module: str, name: str) -> Any:
        found = self._allowed.get((module, name))
        return Foreign(f"{module}.{name}"[:200]) if found is None else found

    def load_new_object(self) -> None:
        self.stack.pop()  # the arguments
        made = self.stack.pop()
        if not isinstance(made, Foreign):
            raise UnsafePickle("the checkpoint makes an object in a way that is not read")
        self.append(made())


TolerantReader.dispatch = {
    **TorchReader.dispatch,
    pickle.NEWOBJ[0]: TolerantReader.load_new_object,
}
