"""What hits say of files is what the catalogue says, read once until somebody writes."""

from wordreel.search.file_records import FileRecord, FileRecords
from wordreel.search.filters import Filters


def slow(store, conditions, contents):
    """Ask for each by itself."""
    records = {}
    for content in contents:
        for path in store.first_paths(conditions, [content]).values():
            info, analysis = store.infos_and_analyses([content])[content]
            records[content] = FileRecord(path, info.kind, info.duration, analysis)
    return records


def test_records_are_read_once_and_again_after_a_write(store, monkeypatch):
    files = store.files()
    contents = [*dict.fromkeys(file.content for file in files), "nobody"]
    reads = []
    for name in ("first_paths", "infos_and_analyses"):
        real = getattr(store, name)
        monkeypatch.setattr(store, name, lambda *given, real=real: reads.append(given) or real(*given))
    for filters in (Filters(), Filters(kind="image"), Filters(min_duration=15.0)):
        conditions = filters.conditions
        records = FileRecords(store, conditions)
        expected = slow(store, conditions, contents)
        assert records.of(contents) == expected
        assert 0 < len(expected) < len(contents)
        reads.clear()
        assert records.of(list(expected)) == expected
        assert reads == []
    store.remove([files[0].path])
    gone = records.of(contents)
    assert gone == slow(store, conditions, contents)
    assert files[0].content not in gone
