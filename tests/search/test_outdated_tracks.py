"""Libraries with tracks of an earlier version of an expert that the model cannot read."""

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Talk

from wordreel.embed.embed_library import (
    check_model_fits,
    embed_library,
    embedding_cache,
    outdated_error,
    tracks_of,
)
from wordreel.errors import QueryError
from wordreel.experts.appearance import SUPERSEDED
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.models.bridge import Bridge
from wordreel.models.reel.model import Reel

OLD = "0" * 16


@pytest.fixture
def reader(model):
    model.outdated_tracks = {"colour": frozenset({OLD})}
    return model


def make_old(store, contents):
    for content in contents:
        store.catalogue.run(
            "UPDATE tracks SET fingerprint = ? WHERE content = ? AND expert = 'colour'", OLD, content
        )


def contents_of(store):
    return [video.content for video in store.videos()]


def available_of(store, reader, content):
    """Which rows a video's clips have."""
    gallery = embedding_cache(store, reader).load()
    rows = np.isin(gallery.ids, [clip.id for clip in store.clips(content)])
    return dict(zip(reader.experts, gallery.available[rows].any(axis=0).tolist(), strict=True))


def test_a_library_of_old_tracks_alone_names_what_to_do(store, reader):
    check_model_fits(store, reader)
    make_old(store, contents_of(store))
    reader.track_experts = ("colour",)
    with pytest.raises(QueryError, match="earlier version of the expert colour") as raised:
        check_model_fits(store, reader)
    assert raised.value.next_step.command == "add FOLDER"


def test_a_library_with_old_tracks_is_searched_by_the_other_experts(store, reader, tmp_path, caplog):
    make_old(store, contents_of(store))
    with Library(tmp_path / "library", create=False, model=reader) as library:
        found = library.search("red")
    assert {reason.expert for hit in found for reason in hit.why} == {"talk"}
    (said,) = caplog.messages
    assert "earlier version of the expert colour" in said
    assert said.endswith("(no other expert runs): `wordreel add FOLDER`")


def test_adding_the_folder_again_runs_the_expert_again(store, reader, tmp_path, caplog):
    contents = contents_of(store)
    make_old(store, contents)
    embed_library(store, reader)
    assert available_of(store, reader, contents[0]) == {"colour": False, "talk": True}
    report = add(store, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
    assert len(report.updated) == len(contents)
    assert outdated_error(store, reader) is None
    embed_library(store, reader)
    assert all(available_of(store, reader, content)["colour"] for content in contents)
    with Library(tmp_path / "library", create=False, model=reader) as library:
        assert library.search("red")[0].why[0].expert == "colour"
    assert not caplog.messages


def test_old_tracks_among_new_ones_count_as_absent(store, reader):
    old, *new = contents_of(store)
    make_old(store, [old])
    check_model_fits(store, reader)
    assert outdated_error(store, reader) is None
    assert "colour" not in tracks_of(store, reader, old)
    assert "colour" in tracks_of(store, reader, new[0])
    embed_library(store, reader)
    assert not available_of(store, reader, old)["colour"]
    assert available_of(store, reader, new[0])["colour"]


def test_a_library_without_the_expert_is_no_old_one(store, reader):
    reader.outdated_tracks = {"appearance": frozenset({OLD})}
    check_model_fits(store, reader)
    assert outdated_error(store, reader) is None


def test_the_built_in_models_do_not_read_the_published_network():
    assert {"appearance": SUPERSEDED} == Bridge.outdated_tracks == Reel.outdated_tracks
