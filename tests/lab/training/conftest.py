import pytest


@pytest.fixture
def real_charts():
    """For tests of what a run draws."""


@pytest.fixture(autouse=True)
def _blank_charts(request, monkeypatch):
    """A run of these tests draws in milliseconds: matplotlib would take longer than the training."""
    if "real_charts" not in request.fixturenames:
        monkeypatch.setattr("wordreel.lab.plots.line_chart", lambda *given, **named: "<svg/>")
