"""Libraries that were added before wordreel had the eyes of its model."""

import pytest
from tests.fakes import Colour, FakeFence, Talk

from wordreel.embed.embed_library import check_model_fits, outdated_error
from wordreel.errors import QueryError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.models.model_store import DEFAULT, RETIRED, in_use


@pytest.fixture
def blind(store, model):
    """A model whose eyes the library does not have."""
    store.catalogue.run("DELETE FROM tracks WHERE expert = 'colour'")
    model.eyes, model.former_eyes = "colour", "talk"
    return model


def test_a_library_without_anything_the_model_reads_names_what_to_do(store, blind):
    blind.track_experts = ("colour",)
    with pytest.raises(QueryError, match="added without the expert colour") as raised:
        check_model_fits(store, blind)
    assert raised.value.next_step.command == "add FOLDER"


def test_a_library_without_the_eyes_is_searched_by_the_other_experts(store, blind, tmp_path, caplog):
    with Library(tmp_path / "library", create=False, model=blind) as library:
        found = library.search("red")
    assert {reason.expert for hit in found for reason in hit.why} == {"talk"}
    (said,) = caplog.messages
    assert "added without the expert colour" in said
    assert said.endswith("(what was heard and read is kept): `wordreel add FOLDER`")


def test_adding_the_folder_again_runs_the_eyes_alone(store, blind, tmp_path, caplog):
    contents = [video.content for video in store.videos()]
    assert store.count_without("colour") == len(contents)
    report = add(store, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
    assert len(report.updated) == len(contents)
    assert store.count_without("colour") == 0
    assert outdated_error(store, blind) is None
    with Library(tmp_path / "library", create=False, model=blind) as library:
        assert library.search("red")[0].why[0].expert == "colour"
    assert not caplog.messages


def test_a_library_that_is_half_old_says_nothing(store, blind, tmp_path):
    add(store, [tmp_path / "media" / "part0"], [Colour(), Talk()], FakeFence())
    assert 0 < store.count_without("colour") < len(store.videos())
    assert outdated_error(store, blind) is None


def test_a_library_of_chosen_experts_is_no_old_one(store, blind):
    blind.former_eyes = "appearance"
    assert outdated_error(store, blind) is None


@pytest.mark.parametrize("name", RETIRED)
def test_models_of_earlier_versions_give_way_to_the_default_one(store, name):
    store.set_setting("model", name)
    assert in_use(store) == DEFAULT
