"""Embedding a library again, with real experts."""

import wordreel

EXPERTS = ("ocr", "shots")


def test_reindexing_gives_the_same_answers(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    library.add(media, experts=EXPERTS)
    before = [(hit.path, hit.score) for hit in library.search("steam")]
    assert library.reindex() == 3
    assert [(hit.path, hit.score) for hit in library.search("steam")] == before
