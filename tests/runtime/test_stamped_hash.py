import hashlib
import os

from wordreel.runtime import stamped_hash
from wordreel.runtime.stamped_hash import STAMPED, has_sha256, sha256_of
from wordreel.util.checksum import file_sha256


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_a_large_file_is_hashed_again_only_after_a_change(tmp_path, monkeypatch):
    file, stamps, reads = tmp_path / "large.bin", tmp_path / "stamps", []
    content = bytes(STAMPED)
    file.write_bytes(content)
    monkeypatch.setattr(stamped_hash, "file_sha256", lambda path: reads.append(path) or file_sha256(path))

    def in_a_new_process(expected=None):
        monkeypatch.setattr(stamped_hash, "_checked", set())
        return has_sha256(file, expected or digest(content), stamps), len(reads)

    assert in_a_new_process() == (True, 1)
    assert in_a_new_process() == (True, 1)
    assert in_a_new_process("0" * 64) == (False, 1)
    facts = file.stat()
    file.write_bytes(b"x" + content[1:])
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # the time of change cannot be set
    assert in_a_new_process() == (False, 2)
    file.write_bytes(content)
    assert in_a_new_process() == (True, 3)
    next(stamps.iterdir()).write_bytes(b"\xff")
    assert in_a_new_process() == (True, 4)


def test_small_files_have_no_stamps(tmp_path):
    (tmp_path / "small.bin").write_bytes(b"small")
    assert has_sha256(tmp_path / "small.bin", digest(b"small"), tmp_path / "stamps")
    assert not (tmp_path / "stamps").exists()


def test_a_hash_is_computed_again_only_after_a_change(tmp_path, monkeypatch):
    file, stamps, reads = tmp_path / "model.bin", tmp_path / "stamps", []
    monkeypatch.setattr(stamped_hash, "file_sha256", lambda path: reads.append(path) or file_sha256(path))
    file.write_bytes(b"first")
    assert [sha256_of(file, stamps) for _ in range(2)] == [digest(b"first")] * 2
    assert len(reads) == 1
    facts = file.stat()
    file.write_bytes(b"other")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # the time of change cannot be set
    assert sha256_of(file, stamps) == digest(b"other")
    for damage in (b"", b"[]", b"{}", b"\xff"):
        next(stamps.iterdir()).write_bytes(damage)
        assert sha256_of(file, stamps) == digest(b"other")
