"""The tool that lists everyday things and actions."""

import json

import pytest
from tools.concepts import choose, phrases, sentences


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a man is playing a video game", ["man", "playing a video game", "video game"]),
        ("the dogs walking on the beach .", ["dogs", "walking on the beach", "beach"]),
        ("a group of people", []),  # what comes after "of" is meant
        ("a table covered with food", []),  # cut off
    ],
)
def test_a_phrase_counts_where_something_ends_it(caption, expected):
    assert [phrase for _, phrase in phrases(caption.split())] == expected


def test_the_most_frequent_are_chosen_once_in_either_number():
    captions = ["a dog is here"] * 20 + ["the dogs are here"] * 15 + ["a cat"] * 13 + ["a bat"]
    assert choose(captions, 10) == ["cat", "dog"]


def test_captions_are_read_from_nested_json(tmp_path):
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"train": {"1": ["a dog"], "2": ["a cat", "a bird"]}}))
    assert list(sentences(path)) == ["a dog", "a cat", "a bird"]
