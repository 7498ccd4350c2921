"""The model that answers, exchanged when `wordreel use` chose another while the server runs."""

from __future__ import annotations

import threading

from wordreel.api import Library
from wordreel.errors import WordreelError
from wordreel.models.kept import in_use, open_kept
from wordreel.serve.encoder import CachedQueryModel


class UsedModel:
    """`now` is the library's model as of the latest look; `problem` says why it is not the chosen one."""

    def __init__(self, library: Library) -> None:
        self._library, self._lock = library, threading.Lock()
        self.key = in_use(library.store)  # what `wordreel use` takes
        self.now = CachedQueryModel(library.model)
        self.problem: WordreelError | None = None

    def look(self) -> CachedQueryModel:
        """The library's model. One that cannot be opened leaves the old one at work."""
        with self._lock:
            key = in_use(self._library.store)
            if key != self.key:
                self.key = key
                try:
                    model = open_kept(self._library.store, self._library.weights)
                except WordreelError as error:
                    self.problem = WordreelError(
                        f"another model was chosen, but {self.now.name!r} still answers: {error.message}",
                        error.next_step,
                    )
                else:
                    self._library.__dict__["model"] = model  # as `Library.use` would have left it
                    self.now, self.problem = CachedQueryModel(model), None
            return self.now
