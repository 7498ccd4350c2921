from wordreel.util.lru_cache import LRUCache


def test_many_values_are_used_as_if_one_by_one():
    together, alone = LRUCache[int, str](3), LRUCache[int, str](3)
    for cache in (together, alone):
        for number in range(3):
            cache.put(number, str(number))
    assert together.get_many([2, 0, 7]) == {key: alone.get(key) for key in (2, 0, 7)}
    for cache in (together, alone):
        cache.put(3, "3")  # evicts 1, which was not asked for
        assert [cache.get(number) for number in range(4)] == ["0", None, "2", "3"]
