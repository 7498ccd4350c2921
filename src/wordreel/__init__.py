"""Find the moment in your videos with words.

    import wordreel

    library = wordreel.Library("holiday.reel")
    library.add("~/Videos")
    for hit in library.search("a man lifts a car", limit=3):
        print(hit.path, hit.start, hit.score, hit.why)

Importing this package is cheap: decoders and networks load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordreel.api import Library
    from wordreel.search.hits import Hit

__version__ = "0.2.0"
__all__ = ["Hit", "Library", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Library":
        from wordreel.api import Library

        return Library
    if name == "Hit":
        from wordreel.search.hits import Hit

        return Hit
    raise AttributeError(f"module 'wordreel' has no attribute {name!r}")
