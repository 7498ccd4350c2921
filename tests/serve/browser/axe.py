"""The accessibility audit of axe-core, which is not shipped: WORDREEL_AXE names its axe.min.js."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.serve.browser.cdp import Page

RUN = """(async () => {
  const told = await axe.run(document, {resultTypes: ["violations"]});
  return told.violations.map(v => `${v.impact} ${v.id}: ${v.nodes.map(n => n.target.join(" ")).join(" | ")}`);
})()"""


def script() -> str:
    path = os.environ.get("WORDREEL_AXE")
    if not path:
        pytest.skip("WORDREEL_AXE=…/axe.min.js turns the accessibility audit on: npm pack axe-core")
    return Path(path).read_text(encoding="utf-8")


def findings(page: Page, source: str) -> list[str]:
    """What axe finds on the page as it stands, the impact first."""
    page.js(f"{source}; true")
    found: list[str] = page.js(RUN)
    return found
