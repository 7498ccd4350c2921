"""A browser for the tests of the page, and the page with canned answers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from tests.serve import fake_server
from tests.serve.browser.cdp import Browser, Page, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    if find_spec("websockets") is None:
        pytest.skip("needs the serve extra: pip install 'wordreel[serve]'")
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def full() -> Iterator[Any]:
    """A server with canned answers; `.address` is its address."""
    server = fake_server.start("full")
    yield server
    server.shutdown()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.page()
    yield opened
    opened.close()
