"""Banks of a library that loses its videos."""

from tests.fakes import Colour, FakeFence, Talk

from wordreel.ingest.add import add
from wordreel.library import Library


def test_a_bank_outlives_the_last_video(store, films, model):
    """Fitted to videos that are all gone, a bank is updated without them, and fits the next ones."""
    with Library(store.path, model=model) as library:
        library.banks.build("colours", ["red", "green", "blue"], "a test")
        before = [hit.score for hit in library.search("red", norm="csls", limit=50)]
        library.remove(films[0].parents[1])
        library.banks.update()
        assert library.banks.add("colours", ["red dogs"], "a test") == 1
        assert library.banks.remove("colours", ["red dogs"]) == 1
        assert list(library.search("red", norm="csls")) == []
        add(library.store, [films[0].parents[1]], [Colour(), Talk()], FakeFence())
        library.embed()
        library.banks.update()
        assert [hit.score for hit in library.search("red", norm="csls", limit=50)] == before
