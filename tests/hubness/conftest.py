"""Cases that are logits on purpose."""

import warnings

import pytest


@pytest.fixture
def logits_on_purpose():
    """The one warning that logits with a β for cosines bring is expected; any other is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [str(one.message) for one in caught if "so they look like logits" not in str(one.message)] == []
