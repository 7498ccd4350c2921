"""Every target, by name."""

from __future__ import annotations

from tests.fuzz.engine import Target
from tests.fuzz.targets import arrays, http, library, media, queries, texts, weights

TARGETS: dict[str, Target] = {
    target.name: target
    for part in (weights, arrays, texts, queries, library, media, http)
    for target in part.TARGETS
}
