"""`Library`: everything the command line does, from Python.

The examples run against a library of three short films: red poppies, a green meadow and the blue sea.
"""

from __future__ import annotations

from wordreel.api.files import FileMethods
from wordreel.api.models import ModelMethods
from wordreel.api.searching import SearchMethods
from wordreel.api.servers import ServerMethods


class Library(ServerMethods, ModelMethods, FileMethods, SearchMethods):
    """A folder on disk that holds what is known of videos, and finds moments in them.

    Args:
        path: The library's folder. The videos themselves stay where they are.
        create: Create the library if it does not exist.
        weights: Where the weights of experts and models are; the user's weight store by default.
        model: Answer with this model instead of the one that the library uses.
        index: Search by this vector server (`postgresql://…`, `milvus://…`) or "local", instead of what the
            library remembers.

    Raises:
        LibraryError: There is no library at `path` and `create` is false, or it cannot be opened.

    >>> with Library(folder / "films") as films:
    ...     films.videos()
    []
    """
