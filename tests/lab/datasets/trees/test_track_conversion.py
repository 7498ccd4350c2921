import numpy as np
import pytest

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees.track_conversion import MAX_NUMBERS, UNKNOWN_TIME, as_track
from wordreel.types import Absent, Track


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", ">f4"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (2, 1, 1, 3)])
def test_arrays_of_all_kinds_become_rows_of_float32(dtype, shape):
    value = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    track = as_track(value)
    assert isinstance(track, Track)
    assert track.values.dtype == np.float32
    assert np.array_equal(track.values, value.reshape(-1, 3).astype("f4"))
    assert (track.times == UNKNOWN_TIME).all()


def test_lists_of_rows_and_of_arrays_are_joined():
    parts = [np.ones(2), np.zeros((2, 2)), [3.0, 4.0]]
    assert as_track(parts).values.tolist() == [[1, 1], [0, 0], [0, 0], [3, 4]]
    assert as_track([1.0, 2.0]).values.tolist() == [[1, 2]]
    objects = np.empty(2, object)
    objects[:] = [np.ones(2), np.zeros(2)]
    assert as_track(objects).values.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "NaN"),
        (np.float32("nan"), "NaN"),
        (np.array(np.nan), "NaN"),
        (np.full(4, np.nan), "NaN"),
        (np.array([[np.nan] * 2, [1, 2]]), "NaN"),  # a first row of NaN is how the published code tells
        ([float("nan")], "NaN"),
        (np.zeros((0, 4)), "empty"),
        (np.zeros(0), "empty"),
        ([], "empty"),
        (None, "no value"),
    ],
)
def test_what_is_missing_is_absent_with_a_reason(value, why):
    found = as_track(value)
    assert isinstance(found, Absent)
    assert why in found.reason


def test_a_later_row_of_nan_is_left_out_with_its_time():
    value = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
    track = as_track(value, np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]))
    assert track.values.tolist() == [[1, 2], [3, 4]]
    assert track.times.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, np.inf]),
        np.array([1.0, np.nan]),
        np.array([1e300]),
        1.5,
        7,
        "words",
        {"a": 1},
        np.array(["a", "b"]),
        np.zeros((2, 3, 4)),
        [np.zeros(2), np.zeros(3)],
        [[[1.0]]],
        ["a"],
        np.array([1j]),
    ],
)
def test_what_makes_no_sense_is_an_error(value):
    with pytest.raises(DatasetError):
        as_track(value)


def test_a_list_that_names_one_array_very_often_is_refused_before_it_is_copied():
    large = np.zeros((1, MAX_NUMBERS // 1000), "u1")
    with pytest.raises(DatasetError, match="numbers for one item"):
        as_track([large] * 100_000)
    loop: list = []
    loop.append(loop)
    with pytest.raises(DatasetError):
        as_track(loop)


def test_times_that_are_none_are_unknown():
    value = np.ones((4, 2))
    times = np.array([[0, 1], [np.nan, 2], [5, 4], [-1, -1]])
    assert as_track(value, times).times.tolist() == [[0, 1]] + [[UNKNOWN_TIME] * 2] * 3
    assert as_track(value, times[:1]).times[1:].tolist() == [[UNKNOWN_TIME] * 2] * 3
    assert (as_track(value, np.array(["a"])).times == UNKNOWN_TIME).all()
