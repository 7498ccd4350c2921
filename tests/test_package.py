"""What `import wordreel` offers, and what is published of it."""

import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import wordreel

ROOT = Path(__file__).parents[1]
MOST_BYTES = 40_000_000


def test_the_package_names_what_it_has():
    assert wordreel.Library.__name__ == "Library"
    for name in wordreel.__all__:
        assert name == "__version__" or getattr(wordreel, name).__name__ == name
    exported = {name for names in wordreel._MODULES.values() for name in names}
    assert {*exported, "Progress", "WordreelError", "__version__"} <= set(wordreel.__all__)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = wordreel.nothing_here


def test_what_is_published_holds_the_package_and_no_data_of_tests(tmp_path):
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    (sdist,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames()}
    top = {name.split("/")[0] for name in inside}
    assert top == {
        "src",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    } | (top & {".gitignore"})
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = message_from_bytes(archive.read(next(n for n in names if n.endswith("/METADATA"))))
    assert {name.split("/")[0] for name in names} == {
        "wordreel",
        f"wordreel-{wordreel.__version__}.dist-info",
    }
    assert about["Author"] == "The wordreel maintainers"
    assert about.get_all("Project-URL")
    assert len(about.get_all("Classifier")) > 8
    assert max(Path(sdist).stat().st_size, Path(wheel).stat().st_size) < MOST_BYTES


def test_the_workflow_makes_the_package():
    assert "make package" in (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
