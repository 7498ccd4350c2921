"""The small fake library of the search tests, with a bank of colours."""

from tests.search.conftest import ColourModel, films, model, store  # noqa: F401
