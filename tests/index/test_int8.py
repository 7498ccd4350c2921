import numpy as np
import pytest
from tests.index.naive import check_search, correction_of, unit_vectors, whole_numbers

from wordreel.index import groups, int8


def built(folder, case):
    int8.BUILDER.build(folder, case[0], case[1])
    return int8.BUILDER.open(folder, case[0], case[1])


@pytest.fixture
def small(monkeypatch):
    """Sizes at which a few hundred items fill several groups, tiles, blocks and passes."""

    def choose(rng):
        monkeypatch.setattr(int8, "FEW", int(rng.integers(0, 12)))
        monkeypatch.setattr(groups, "FEW", int(rng.integers(0, 12)))
        monkeypatch.setattr(groups, "BLOCK", int(rng.integers(1, 100)))
        monkeypatch.setattr(int8, "TILE", int(rng.integers(1, 200)))
        monkeypatch.setattr(int8, "PROMISING", int(rng.integers(1, 4)))
        monkeypatch.setattr(int8, "RESCORED", int(rng.integers(1, 40)))

    return choose


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["plain", "corrected", "gated"])
@pytest.mark.parametrize("make", [whole_numbers, unit_vectors])
def test_searches_equal_the_definition(seed, kind, make, small, tmp_path):
    rng = np.random.default_rng(seed)
    small(rng)
    case = make(rng, int(rng.integers(1, 500)))
    index = built(tmp_path, case)
    assert index.exact
    correction = correction_of(kind, rng, case[4])
    allowed = rng.random(len(case[0])) < 0.8
    check_search(index, case, int(rng.integers(1, 12)), allowed, correction)
    check_search(index, case, 5, None, correction)
    few = np.zeros(len(case[0]), bool)
    few[rng.integers(0, len(few), 3)] = True
    check_search(index, case, 5, few, correction)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_for_items_that_codes_describe_badly(seed):
    """Vectors with a few large components, tiny ones, and zeros."""
    rng = np.random.default_rng(seed)
    items = (rng.normal(size=(128, 40)) ** 5 * 10.0 ** rng.integers(-20, 3, (128, 1))).astype(np.float32)
    items[3] = 0
    queries = (rng.normal(size=(3, 40)) ** 3).astype(np.float32)
    tile = int8.Tile(slice(0, 128), *int8.quantise(items))
    values = rng.normal(size=128).astype(np.float32)
    for penalty in (None, groups.Penalty(128, values)):
        rounded = int8.RoundedQueries.of(queries)
        bounds = tile.upper_bounds(rounded, penalty)
        scores = queries.astype(float) @ items.astype(float).T
        scores -= 0 if penalty is None else values
        assert (bounds.astype(float) * rounded.step >= scores).all()


def test_most_items_are_not_scored_again(tmp_path, monkeypatch):
    monkeypatch.setattr(int8, "FEW", 0)
    monkeypatch.setattr(groups, "FEW", 0)
    rng = np.random.default_rng(0)
    items, available, queries, weights, _ = unit_vectors(rng, 4_000, present=1.0)
    index = built(tmp_path, (items, available))
    scored = []
    real = groups.FullVectors.rescore

    def counted(self, query, places, *rest):
        scored.append(len(places))
        return real(self, query, places, *rest)

    monkeypatch.setattr(groups.FullVectors, "rescore", counted)
    index.search(queries[:1], weights[:1], 10)
    assert 10 <= sum(scored) < 400


@pytest.mark.parametrize("name", ["codes.bin", "numbers.bin", "rows.bin", "groups.json"])
def test_files_that_were_cut_or_emptied_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(int8, "FEW", 2)
    case = unit_vectors(np.random.default_rng(0), 100)
    built(tmp_path, case)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError):
        int8.BUILDER.open(tmp_path, case[0], case[1])
    path.unlink()
    with pytest.raises(OSError):
        int8.BUILDER.open(tmp_path, case[0], case[1])


def test_an_index_of_another_gallery_is_refused(tmp_path):
    case = unit_vectors(np.random.default_rng(0), 100)
    built(tmp_path, case)
    with pytest.raises(ValueError):
        int8.BUILDER.open(tmp_path, case[0][:99], case[1][:99])
    with pytest.raises(ValueError):
        int8.BUILDER.open(tmp_path, case[0][:, :2], case[1][:, :2])
