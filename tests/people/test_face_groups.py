"""Spans of faces and their groups, each against the slow, obvious way."""

import numpy as np
import pytest

from wordreel.people.face_groups import (
    MIN_ROWS,
    THRESHOLD,
    candidate_groups,
    centred,
    face_mean,
    face_spans,
    group_faces,
)
from wordreel.types import Track

DIM = 128


def unit(values):
    return (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float32)


def faces_of(people, count, noise, seed=0):
    """`count` looks at each of some people: unit vectors round a direction of each."""
    random = np.random.default_rng(seed)
    middle = unit(random.normal(size=(people, DIM)))
    who = np.repeat(np.arange(people), count)
    return unit(middle[who] + noise * random.normal(size=(len(who), DIM)) / np.sqrt(DIM)), who


def track_of(rows):
    """A track of (second, vector)."""
    times = np.array([(second, second + 1.0) for second, _ in rows], np.float64)
    return Track(np.stack([vector for _, vector in rows]), times)


def test_a_face_in_consecutive_seconds_is_one_span():
    (anna, bob), _ = faces_of(2, 1, 0.0)
    rows = [
        (0.0, anna),
        (0.0, bob),
        (1.0, bob),
        (1.0, anna),
        (2.0, anna),
        (4.0, anna),
        (9.0, anna),
        (10.0, anna),
    ]
    spans = face_spans(track_of(rows))
    assert [(span.start, span.end, span.rows) for span in spans] == [
        (0.0, 5.0, 4),
        (0.0, 2.0, 2),
        (9.0, 11.0, 2),
    ]
    np.testing.assert_allclose(spans[1].vector, centred(bob), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(spans[0].vector), 1.0, atol=1e-5)


def test_a_face_that_is_seen_once_counts_only_in_pictures():
    (anna, bob), _ = faces_of(2, 1, 0.0)
    track = track_of([(0.0, anna), (0.0, bob)])
    assert face_spans(track) == []
    assert [span.rows for span in face_spans(track, still=True)] == [1, 1]
    assert MIN_ROWS == 2


def test_two_alike_faces_of_one_second_stay_two():
    (anna,), _ = faces_of(1, 1, 0.0)
    spans = face_spans(track_of([(0.0, anna), (0.0, anna), (1.0, anna), (1.0, anna)]))
    assert [span.rows for span in spans] == [2, 2]


def test_the_mean_is_taken_out():
    assert face_mean().shape == (DIM,)
    assert 0.2 < np.linalg.norm(face_mean()) < 0.5
    strangers = unit(face_mean() + unit(np.random.default_rng(1).normal(size=(2, DIM))))
    plain, without = strangers[0] @ strangers[1], centred(strangers[0]) @ centred(strangers[1])
    assert without < plain - 0.05  # what all faces share says nothing about whom they show


def slow_groups(vectors, groups, apart, edited, threshold):
    """Merge the most alike pair of clusters until there is none, similarities summed from scratch."""
    pairs = {frozenset(pair) for pair in apart.tolist()}
    clusters = {}
    for face, group in enumerate(groups.tolist()):
        clusters.setdefault(group if group >= 0 else ("new", face), set()).add(face)
    fixed = {name: {name} if name in edited else set() for name in clusters}

    def alike(one, two):
        values = [
            -1.0 if frozenset((a, b)) in pairs else float(vectors[a] @ vectors[b])
            for a in clusters[one]
            for b in clusters[two]
        ]
        return -np.inf if fixed[one] and fixed[two] else np.mean(values)

    while len(clusters) > 1:
        names = list(clusters)
        best = max(((alike(a, b), a, b) for i, a in enumerate(names) for b in names[:i]), key=lambda x: x[0])
        if best[0] < threshold:
            break
        _, one, two = best
        clusters[one] |= clusters.pop(two)
        fixed[one] |= fixed.pop(two)
    return {frozenset(members) for members in clusters.values()}


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@pytest.mark.parametrize("seed", range(6))
def test_groups_equal_the_slow_way(seed):
    random = np.random.default_rng(seed)
    vectors, who = faces_of(5, 5, 1.1, seed)
    groups = np.where(random.random(len(who)) < 0.5, who, -1)
    groups[random.integers(len(who), size=3)] = 1  # mistakes of the past
    apart = np.array([(0, 1), (7, 8), (3, 20)][: seed % 4], np.int64).reshape(-1, 2)
    edited = [0, 1, 3][: seed % 4]
    found = group_faces(vectors, groups, apart, edited)
    assert partition(found) == slow_groups(vectors, groups, apart, edited, THRESHOLD)


@pytest.mark.parametrize("seed", range(4))
def test_groups_that_nobody_resembles_may_be_left_out(seed):
    vectors, _ = faces_of(12, 4, 0.9, seed)
    nobody = np.zeros((0, 2), np.int64)
    known = group_faces(vectors[:40], np.full(40, -1), nobody, [])
    known = np.unique(known, return_inverse=True)[1]
    groups = np.concatenate([known, np.full(8, -1)])
    everything = group_faces(vectors, groups, nobody, [])
    candidates = candidate_groups(vectors[:40], known, vectors[40:])
    chosen = np.concatenate([np.isin(known, candidates), np.ones(8, bool)])
    some = everything.copy()
    some[chosen] = group_faces(vectors[chosen], groups[chosen], nobody, [])
    assert partition(some) == partition(everything)
    assert len(candidates) < len(np.unique(known))


def test_new_faces_join_the_groups_they_resemble():
    vectors, who = faces_of(3, 6, 0.6)
    groups = np.where(np.arange(len(who)) % 6 < 3, who + 10, -1)
    found = group_faces(vectors, groups, np.zeros((0, 2), np.int64), [])
    np.testing.assert_array_equal(found, who + 10)


def test_people_seen_together_are_two_even_if_they_look_alike():
    (anna,), _ = faces_of(1, 1, 0.0)
    twins = np.stack([anna, anna])
    assert len(set(group_faces(twins, np.array([-1, -1]), np.array([[0, 1]]), []).tolist())) == 2
    assert len(set(group_faces(twins, np.array([-1, -1]), np.zeros((0, 2), np.int64), []).tolist())) == 1


def test_edited_groups_are_never_merged_with_one_another():
    vectors, _ = faces_of(1, 6, 0.1)
    groups = np.array([4, 4, 9, 9, -1, -1])
    nobody = np.zeros((0, 2), np.int64)
    assert set(group_faces(vectors, groups, nobody, [4, 9]).tolist()) == {4, 9}
    assert set(group_faces(vectors, groups, nobody, [9]).tolist()) == {9}  # the edited one keeps its number
    assert set(group_faces(vectors, groups, nobody, []).tolist()) == {4}
