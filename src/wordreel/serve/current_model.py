"""The model that answers, swapped when `wordreel use` chooses another while the server runs."""

from __future__ import annotations

import threading

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import WordreelError
from wordreel.models.base import Model
from wordreel.models.model_store import in_use, open_model
from wordreel.runtime.store import WeightStore


class CurrentModel:
    """`now` is the library's model as of the latest call; `problem` says why it is not the chosen one."""

    def __init__(self, store: LibraryStore, weights: WeightStore, model: Model) -> None:
        self._store, self._weights = store, weights
        self._lock = threading.Lock()
        self.key = in_use(store)  # what `wordreel use` takes
        self.now = model
        self.problem: WordreelError | None = None

    def __call__(self) -> Model:
        """The library's model. If it cannot be opened, the old one stays."""
        with self._lock:
            key = in_use(self._store)
            if key != self.key:
                self.key = key
                try:
                    model = open_model(self._store, self._weights)
                except WordreelError as error:
                    self.problem = WordreelError(
                        f"another model was chosen, but {self.now.name!r} still answers: {error.message}",
                        error.next_step,
                    )
                else:
                    self.now, self.problem = model, None
            return self.now
