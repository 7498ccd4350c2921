"""`wordreel people`."""

from tests.face_tracks import put_faces

from wordreel.catalogue.store import LibraryStore


def test_people_are_grouped_named_found_and_forgotten(shell, media):
    assert "People are off" in shell("people", "list")
    with LibraryStore.open(shell.library) as store:
        put_faces(store, media / "station.mp4", (0, 0, 0), (1, 0, 0))
        put_faces(store, media / "signs" / "bakery.mp4", (0, 1, 0))
    assert "2 moments in 2 files" in shell("people", "on")
    anna, bob = shell.json("people", "list", "--all")
    shell("people", "name", str(anna["id"]), "Anna")
    assert "Anna" in shell("people", "list")
    assert len(shell.json("people", "list", "Anna")) == 2
    hits = shell.json("search", "anna at a bakery")
    assert {hit["why"][0]["what"] for hit in hits} == {"Anna"}
    assert "person: Anna" in shell("search", "grand opening", "--person", "Anna")
    assert shell("people", "merge", "Anna", str(bob["id"])) == "Anna: 3 moments\n"
    last = shell.json("people", "list", "Anna")[-1]["id"]
    shell("people", "split", "Anna", str(last))
    shell("people", "off")
    assert "2 people forgotten" in shell("people", "forget")
    assert shell.json("people", "list", "--all") == []
