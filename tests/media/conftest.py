import pytest

from wordreel.media import Fence


@pytest.fixture(scope="session")
def fence():
    with Fence() as shared:
        yield shared
