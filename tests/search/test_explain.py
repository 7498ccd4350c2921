"""Tags and words of notes in searches: moments, not only videos, and the reason is given."""

import pytest
from tests.face_tracks import put_faces
from tests.fakes import FakeFence, experts, write_media
from tests.search.conftest import ColourModel

from wordreel.errors import LibraryError, QueryError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.search.filters import Filters
from wordreel.search.query import Query, VideoMoment
from wordreel.search.saved import query_from_json, query_to_json
from wordreel.search.words.query_terms import split_terms


@pytest.fixture
def library(tmp_path):
    for number, seconds in enumerate((95.0, 65.0, 12.0)):
        write_media(tmp_path / "media" / f"film{number}.mp4", seconds=seconds, seed=number)
    write_media(tmp_path / "media" / "still.png", seed=9, kind="image")
    with Library(tmp_path / "library", model=ColourModel()) as library:
        add(library.store, [tmp_path / "media"], experts(), FakeFence())
        yield library


def film(library, number):
    return library.path.parent / "media" / f"film{number}.mp4"


def spans(hits):
    return sorted((hit.path.name, hit.start, hit.end) for hit in hits)


def test_only_tagged_moments_pass_with_the_reason(library):
    library.annotations.tag(film(library, 0), "Beach", 15, 16)
    library.annotations.tag(film(library, 2), "beach")
    expected = [
        hit
        for hit in library.search("red", moments=True, limit=99)
        if str(hit.path).endswith("film2.mp4")
        or (hit.path.name == "film0.mp4" and hit.start < 16 < 1 + hit.end)
    ]
    found = library.search("red tag:BEACH", moments=True, limit=99)
    assert spans(found) == spans(expected)
    assert [hit.score for hit in found] == [hit.score for hit in expected]
    assert [(r.expert, r.what, r.share) for r in found[0].why][:1] == [("tag", "BEACH", 0.0)]
    assert {str(hit.path) for hit in library.search(Query("red", filters=Filters(tags="beach")))} == {
        str(hit.path) for hit in expected
    }
    assert spans(library.search("red", tags=["beach"]))[0][1] <= 15  # the moment, not the best of the video


def test_tags_change_what_an_open_searcher_finds(library):
    assert list(library.search("red tag:beach")) == []
    made = library.annotations.tag(film(library, 1), "beach")
    assert len(library.search("red tag:beach")) == 1
    assert list(library.search("red", tags=["beach", "dog"])) == []
    library.annotations.remove(made.id)
    assert list(library.search("red tag:beach")) == []


def test_a_tag_alone_is_a_query(library):
    library.annotations.tag(film(library, 1), "two words", 1, 2)
    library.annotations.tag(library.path.parent / "media" / "still.png", "two words")
    found = library.search('tag:"two words"')
    assert {hit.path.name for hit in found} == {"film1.mp4", "still.png"}


def test_words_of_notes_count_like_spoken_ones(library):
    plain = library.search("zeppelin", moments=True, limit=99)
    library.annotations.note(film(library, 0), "the Zeppelins arrive", 41, 42)
    found = library.search("zeppelin", moments=True, limit=99)
    assert found[0].path.name == "film0.mp4"
    assert found[0].start < 42
    assert found[0].end > 41
    assert found[0].why[0].expert == "note words"
    assert found[0].why[0].what == "“the Zeppelins arrive”"
    assert found[0].score > plain[0].score


def test_other_kinds_of_queries_are_filtered_too(library):
    library.annotations.tag(film(library, 1), "x", 0, 30)
    assert {str(hit.path) for hit in library.search(like=film(library, 0), tags=["x"])} == {
        str(film(library, 1))
    }
    pairs = library.search("red", then="blue tag:x")
    assert {hit.path for hit in pairs} <= {film(library, 1)}
    assert all(hit.then[1] <= 40 for hit in pairs)


def test_terms_among_words():
    assert split_terms("tag:a dog TAG:b") == ("dog", ["a", "b"], [])
    assert split_terms("vintage:x tag: dog") == ("vintage:x tag: dog", [], [])
    assert split_terms('tag:"" dog') == ('tag:"" dog', [], [])
    names = ["Anna", "Anna Lee", "Ö"]
    assert split_terms("ANNA LEE and anna", names) == ("and", [], ["Anna Lee", "Anna"])
    assert split_terms("Annabel at the öre", names) == ("Annabel at the öre", [], [])
    assert split_terms("with ö.", names) == ("with .", [], ["Ö"])


QUERIES = [
    Query("a dog"),
    Query("a dog tag:x", then="a cat", min_confidence=0.5),
    Query("a", moments=True, norm="csls", bank="mine", beta=2.0, filters=Filters(folder="/f", kind="video")),
    Query("a", filters=Filters(tags=["x", "y"], people="Anna", has_speech=False, min_duration=3)),
    Query(like=VideoMoment(content="abc", second=3.5)),
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_queries_survive_json(query):
    assert query_from_json(query_to_json(query)) == query


@pytest.mark.parametrize(
    "values",
    [
        {"text": 3}, {"text": "a", "limitt": 3}, {"text": "a", "tags": "x"}, {"text": "a", "after": "soon"},
        {"text": "a", "moments": 1}, {"like": {"content": 3}}, {"like": {"other": "x"}}, {"text": ""},
        {"text": "a", "tags": ["x"] * 21}, {"like": {"content": "x", "second": True}}, {},
        {"text": "a", "beta": True},
    ],
)  # fmt: skip
def test_what_is_no_query_is_refused(values):
    with pytest.raises(QueryError):
        query_from_json(values)


def test_saved_searches(library):
    library.annotations.tag(film(library, 1), "x")
    saved = library.saved.save(" my  album ", Query("red tag:x", limit=3))
    assert saved.name == "my album"
    assert spans(library.search(saved.query)) == spans(library.search("red tag:x"))
    with pytest.raises(LibraryError, match="already"):
        library.saved.save("my album", Query("blue"))
    assert library.saved.save("my album", Query("blue"), replace=True).query.text == "blue"
    with pytest.raises(LibraryError, match="there are: my album"):
        library.saved.get("other")
    for wrong in ("", "a/b", "x" * 101, "a\u202eb"):
        with pytest.raises(QueryError):
            library.saved.save(wrong, Query("blue"))
    with pytest.raises(QueryError, match="picture"):
        library.saved.save("picture", Query(image="a.png"))
    library.saved.save("second", Query("green", filters=Filters(min_duration=60)))
    rows = library.saved.export()
    for name in ("my album", "second"):
        library.saved.remove(name)
    with pytest.raises(QueryError):
        library.saved.import_([rows[0], {"name": "x", "query": {"text": ""}}])
    assert library.saved.list() == []
    assert library.saved.import_(rows) == 2
    assert library.saved.export() == rows
    with pytest.raises(LibraryError, match="already"):
        library.saved.import_([{"name": "third", "query": {"text": "a"}}, rows[0]])
    assert [one.name for one in library.saved.list()] == ["my album", "second"]
    with pytest.raises(LibraryError, match="no saved search"):
        library.saved.remove("third")


def test_a_name_among_the_words_is_a_filter(library):
    put_faces(library.store, film(library, 0), (0, 0, 20), (1, 0, 40))
    put_faces(library.store, film(library, 1), (0, 1, 0))
    plain = library.search("Anna red")
    library.people.turn_on()
    first, second = library.people.list()
    library.people.name(first.id, "Anna")
    library.people.name(second.id, "Bob Lee")
    found = library.search("anna red", moments=True, limit=99)
    expected = [
        hit
        for hit in library.search("red", moments=True, limit=99)
        if (hit.path.name == "film0.mp4" and hit.start < 24 and hit.end > 20)
        or (hit.path.name == "film1.mp4" and hit.start < 4)
    ]
    assert spans(found) == spans(expected)
    assert [hit.score for hit in found] == [hit.score for hit in expected]  # by the other words
    person = found[0].why[0]
    assert (person.expert, person.what, person.share) == ("person", "Anna", 0.0)
    assert person.at in ((20.0, 24.0), (0.0, 4.0))
    assert spans(library.search('red person:"bob lee"', moments=True)) == spans(
        library.search("red", people=["Bob Lee"], moments=True)
    )
    assert {hit.path for hit in library.search("Bob Lee")} == {film(library, 0)}
    assert list(library.search("red Anna Bob Lee", moments=True)) == []  # never in one moment
    assert not library.search('"anna" red')  # in quotes it is a word that somebody must say
    with pytest.raises(LibraryError, match="nobody called 'Zoe'"):
        library.search("red person:Zoe")
    library.people.turn_off()
    assert len(library.search("anna red")) == len(plain)
    with pytest.raises(LibraryError, match="not grouped"):
        library.search("red", people=["Anna"])
