"""The repository root is on the path, so that tests share `tests.media.make` and `tests.hostile`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from wordreel.media import Fence


@pytest.fixture(scope="session")
def fence():
    with Fence() as shared:
        yield shared
