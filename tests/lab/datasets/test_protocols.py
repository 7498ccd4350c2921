import pytest

from wordreel.errors import DatasetError
from wordreel.lab.datasets import protocols, split_builder
from wordreel.lab.datasets.registry import DATASETS
from wordreel.lab.datasets.types import Caption, Item, Split

ALL = protocols.names()
GOOD = (
    'title = "t"\ndataset = "msvd"\nsplit = "test"\nrule = "all"\nt2v = true\nrecall = [1]\npapers = ["p"]\n'
)


def test_the_fields_protocols_are_there():
    wanted = {
        "msrvtt-full", "msrvtt-1k-a", "msrvtt-1k-b", "msvd", "lsmdc", "didemo-paragraph",
        "activitynet-paragraph", "vatex-hgr", "vatex-random", "queryd", "audiocaps", "coco-1k",
        "coco-5k", "flickr8k", "flickr30k", "cub", "sop",
    }  # fmt: skip
    assert wanted == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_each_names_a_dataset_and_a_split_that_can_be_read(name):
    found = protocols.load(name)
    assert found.split in DATASETS[found.dataset].splits
    assert (found.rule == "none") == (not found.t2v)
    assert (found.v2t is None) == (not found.t2v)
    if found.rule in ("one", "paragraph"):
        assert found.captions == found.items
    assert found.papers


def test_figures_of_the_published_splits():
    assert {name: protocols.load(name).items for name in ALL} == {
        "msrvtt-full": 2990, "msrvtt-1k-a": 1000, "msrvtt-1k-b": 1000, "msvd": 670, "lsmdc": 1000,
        "didemo-paragraph": 1004, "activitynet-paragraph": 4917, "vatex-hgr": 1500, "vatex-random": 1500,
        "queryd": 390, "audiocaps": 816, "coco-1k": 5000, "coco-5k": 5000, "flickr8k": 1000,
        "flickr30k": 1000, "cub": 5924, "sop": 60502,
    }  # fmt: skip
    assert protocols.load("msrvtt-full").captions == 20 * 2990 - 6
    assert {name for name in ALL if protocols.load(name).folds} == {"coco-1k"}
    searched = {name: protocols.load(name).modality for name in ALL}
    assert {name for name in ALL if searched[name] == "audio"} == {"audiocaps"}
    pictures = {"coco-1k", "coco-5k", "flickr8k", "flickr30k", "cub", "sop"}
    assert {name for name in ALL if searched[name] == "image"} == pictures


def test_the_two_lists_of_vatex_are_kept_apart():
    one, other = protocols.load("vatex-hgr"), protocols.load("vatex-random")
    assert one.split != other.split
    assert any("vatex-random" in note for note in one.notes)
    assert any("vatex-hgr" in note for note in other.notes)


def test_an_unknown_name_is_answered_with_close_ones():
    with pytest.raises(DatasetError, match=r"did you mean .*msrvtt-1k-a"):
        protocols.load("MSRVTT-1kA")
    with pytest.raises(DatasetError, match="there are activitynet-paragraph"):
        protocols.load("§§§")


@pytest.mark.parametrize("name", ALL)
def test_every_field_has_a_value_that_is_understood(name):
    found = protocols.load(name)
    assert found.rule in ("all", "one", "paragraph", "none")
    assert found.v2t in ("ce", "clip", None)
    assert found.modality in ("video", "image", "audio")
    assert list(found.recall) == sorted(set(found.recall))
    assert all(isinstance(k, int) and k > 0 for k in found.recall)
    assert all(
        value is None or value > 0 for value in (found.items, found.captions, found.limit, found.folds)
    )
    assert all(text.strip() for text in (found.title, *found.papers, *found.notes))
    assert isinstance(found.t2v, bool)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('title = "t"', 'title = "t"\nitmes = 3'), "itmes"),
        (("recall = [1]", ""), "recall"),
        (('title = "t"', "title"), "protocol x"),
    ],
)
def test_a_protocol_with_other_fields_is_refused(change, message):
    with pytest.raises(DatasetError, match=message):
        protocols.parse("x", GOOD.replace(*change))


def split_of(*counts):
    return Split(
        "d", "test", tuple(Item(str(n), tuple(map(Caption, "abc"[:c]))) for n, c in enumerate(counts))
    )


def test_rules():
    split = split_of(3, 1, 0)
    assert split_builder.apply_rule(split, "all") == split
    assert split_builder.apply_rule(split, "one").captions == {"0": ["a"], "1": ["a"], "2": []}
    assert split_builder.apply_rule(split, "paragraph").captions == {"0": ["a b c"], "1": ["a"], "2": []}
    assert split_builder.apply_rule(split, "all", limit=2).captions == {"0": ["a", "b"], "1": ["a"], "2": []}
    with pytest.raises(DatasetError, match="caption rule"):
        split_builder.apply_rule(split, "best")


def test_what_differs_from_the_publication_is_said():
    protocol = protocols.parse("x", GOOD + "items = 3\ncaptions = 5\n")
    assert protocols.deviations(protocol, split_of(3, 1, 1)) == ()
    assert protocols.deviations(protocol, split_of(3, 1)) == (
        "2 items instead of 3",
        "4 captions instead of 5",
    )
