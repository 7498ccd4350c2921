"""People: off by default, grouped as faces come, edited by the owner, forgotten for good."""

import pytest
from tests.face_tracks import put_faces
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError, LibraryReadOnly, QueryError
from wordreel.ingest.add import add
from wordreel.maintain.backup import backup, restore
from wordreel.maintain.verify import verify
from wordreel.people.group_people import waiting_contents
from wordreel.people.people_manager import PeopleManager

ANNA, BOB, CARL = range(3)


@pytest.fixture
def media(tmp_path):
    for number in range(4):
        write_media(tmp_path / "media" / f"film{number}.mp4", seconds=60.0, seed=number)
    return tmp_path / "media"


@pytest.fixture
def store(tmp_path, media):
    """Anna is in three films, Bob in two, Carl in one, where all three are seen at the same time."""
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        add(store, [media], experts(), FakeFence())
        put_faces(store, media / "film0.mp4", (ANNA, 0, 0), (ANNA, 1, 20), (BOB, 0, 40))
        put_faces(store, media / "film1.mp4", (ANNA, 2, 5), (BOB, 1, 5), (CARL, 0, 5))
        put_faces(store, media / "film2.mp4", (ANNA, 3, 0))
        yield store


@pytest.fixture
def people(store):
    return PeopleManager(store)


@pytest.fixture
def anna(people):
    people.turn_on()
    return people.list()[0].id


def counts(people):
    return [(one.name, one.faces, one.videos) for one in people.list()]


def looks(people, who):
    return sorted((face.start, face.end) for face in people.faces(who))


def test_nothing_is_grouped_unless_it_is_turned_on(people, store):
    assert not people.on
    with pytest.raises(LibraryError, match="not grouped"):
        people.update()
    assert store.catalogue.rows("SELECT * FROM person_faces") == []


def test_the_same_person_over_the_library(people, store):
    assert people.turn_on() == 7
    assert counts(people) == [("", 4, 3), ("", 2, 2), ("", 1, 1)]
    assert len(people.list(least=2)) == 2
    first = people.list()[0]
    assert looks(people, first.id) == [(0.0, 4.0), (0.0, 4.0), (5.0, 9.0), (20.0, 24.0)]
    assert first.seconds == 16.0
    assert people.update() == 0  # nothing new
    assert verify(store) == []


def test_new_films_join_the_groups(people, store, media, anna):
    people.name(anna, "Anna")
    put_faces(store, media / "film3.mp4", (ANNA, 4, 0), (BOB, 2, 10), (CARL, 1, 20))
    assert len(waiting_contents(store)) == 1
    assert people.update() == 3
    assert counts(people) == [("Anna", 5, 4), ("", 3, 3), ("", 2, 2)]


def test_no_look_ends_after_its_film(people, store, media):
    put_faces(store, media / "film3.mp4", (ANNA, 4, 57.5))
    people.turn_on()
    assert max(end for _, end in looks(people, people.list()[0].id)) == 60.0


def test_batches_come_to_the_same_groups(people, store, monkeypatch):
    monkeypatch.setattr("wordreel.people.group_people.AT_ONCE", 1)
    people.turn_on()
    assert counts(people) == [("", 4, 3), ("", 2, 2), ("", 1, 1)]


def test_another_track_of_a_film_is_grouped_anew(people, store, media, anna):
    people.name(anna, "Anna")
    put_faces(store, media / "film2.mp4", (BOB, 3, 0), version=2)
    people.update()
    assert counts(people) == [("Anna", 3, 2), ("", 3, 3), ("", 1, 1)]


def test_names_are_unique_and_can_be_searched_for(people, store, anna):
    other = people.list()[1].id
    people.name(anna, "  Anna   Lee ")
    assert people.names() == ["Anna Lee"]
    with pytest.raises(LibraryError, match="somebody else"):
        people.name(other, "ANNA LEE")
    people.name("anna lee", "Anna")
    people.name(str(other), "Bob")
    assert people.names() == ["Anna", "Bob"]
    for wrong in ("x" * 101, 'a"b', "a\u202eb", "123"):
        with pytest.raises(QueryError):
            people.name(anna, wrong)
    people.name("Bob", "")
    assert people.names() == ["Anna"]
    with pytest.raises(LibraryError, match="nobody"):
        people.name("Zoe", "Zoe")
    people.turn_off()
    assert people.names() == []


def test_merged_groups_stay_merged(people, store, media, anna):
    bob = people.list()[1].id
    people.name(bob, "Robert")
    people.merge(anna, bob)
    assert counts(people) == [("Robert", 6, 3), ("", 1, 1)]
    put_faces(store, media / "film3.mp4", (ANNA, 4, 0))
    people.update()
    assert counts(people)[0] == ("Robert", 7, 4)


def test_split_faces_stay_split(people, store, media, anna):
    chosen = [face.id for face in people.faces(anna) if face.start == 20.0]
    new = people.split(anna, chosen)
    assert looks(people, new) == [(20.0, 24.0)]
    put_faces(store, media / "film3.mp4", (ANNA, 4, 0))
    people.update()
    assert {len(people.faces(anna)), len(people.faces(new))} in ({4, 1}, {3, 2})  # never one group again
    for wrong in ([], [10**6], [face.id for face in people.faces(anna)]):
        with pytest.raises(LibraryError):
            people.split(anna, wrong)


def test_a_forgotten_person_does_not_come_back(people, store, anna):
    people.name(anna, "Anna")
    people.forget("Anna")
    assert people.update() == 0
    assert counts(people) == [("", 2, 2), ("", 1, 1)]
    assert people.names() == []
    with pytest.raises(LibraryError):
        people.faces(anna)


def test_forgetting_everybody_leaves_no_vector(people, store, anna):
    people.name(anna, "Anna")
    assert people.forget() == 3
    for table in ("people", "person_faces", "grouped_contents"):
        assert store.catalogue.rows(f"SELECT * FROM {table}") == []  # noqa: S608
    assert not people.on
    assert store.track(store.file(store.files()[0].path).content, "faces") is not None  # the tracks stay
    assert verify(store) == []


def test_faces_go_with_their_video(people, store, media, anna):
    people.name(anna, "Anna")
    store.remove([media / "film1.mp4"])
    assert counts(people)[0] == ("Anna", 3, 2)
    store.remove([media])
    assert counts(people) == [("Anna", 0, 0)]
    assert verify(store) == []


def test_backups_hold_people_and_replicas_are_not_changed(people, store, tmp_path, anna):
    people.name(anna, "Anna")
    backup(store, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with LibraryStore.open(tmp_path / "restored") as restored:
        assert counts(PeopleManager(restored)) == counts(people)
    store.set_setting(REPLICA, "{}")
    for change in (people.turn_on, people.turn_off, people.forget, lambda: people.name(anna, "x")):
        with pytest.raises(LibraryReadOnly):
            change()
