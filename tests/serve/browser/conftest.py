"""A browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tests.serve.browser.cdp import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    if find_spec("websockets") is None:
        pytest.skip("needs the serve extra: pip install 'wordreel[serve]'")
    opened = Browser()
    yield opened
    opened.close()
