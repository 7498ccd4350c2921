import numpy as np

from wordreel.util.checksum import NAME, array_checksum, damaged_files, write_checksums


def test_any_change_of_an_array_changes_the_checksum():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    known = array_checksum({"a": array})
    assert array_checksum({"a": np.asfortranarray(array)}) == known
    other = array.copy()
    other[1, 2] = np.nextafter(other[1, 2], np.float32(9))
    changes = [{"a": other}, {"b": array}, {"a": array.reshape(3, 2)}, {"a": array.view(np.int32)}]
    assert all(array_checksum(change) != known for change in changes)
    assert array_checksum({"a": array, "empty": np.zeros((0, 4))}) != known


def test_files_that_changed_or_are_gone(tmp_path):
    for name in ("a.bin", "deep/b.bin", "c.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode() * 1000)
    assert damaged_files(tmp_path) == []  # nothing is known of them
    write_checksums(tmp_path)
    assert damaged_files(tmp_path) == []
    data = bytearray((tmp_path / "deep/b.bin").read_bytes())
    data[500] ^= 1
    (tmp_path / "deep/b.bin").write_bytes(data)
    (tmp_path / "c.bin").unlink()
    assert [text.split()[0] for text in damaged_files(tmp_path)] == [
        str(tmp_path / "c.bin"),
        str(tmp_path / "deep/b.bin"),
    ]
    for content in (b"", b"[1]", b"{"):
        (tmp_path / NAME).write_bytes(content)
        assert len(damaged_files(tmp_path)) == 1
