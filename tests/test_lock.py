"""What `make test` installs is locked: every requirement has a version that fits, and hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = ("demo", "dev", "docs", "serve", "train")
UNLOCKED = {"torch"}  # builds for each accelerator are other files


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def locked():
    """Version and number of hashes by package."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    found = {}
    for line in lines:
        name, version = re.match(r"([\w.-]+)==(\S+)", line).groups()
        found[canonical(name)] = (version, len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line)))
    return found


def requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = project["build-system"]["requires"]
    extras = project["project"]["optional-dependencies"]
    texts = [*build, *project["project"]["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("wanted", requirements(), ids=str)
def test_every_requirement_is_locked_to_a_version_that_fits(wanted, locked):
    if wanted.name in UNLOCKED:
        assert wanted.name not in locked
        (pin,) = [line for line in (ROOT / "torch.lock").read_text("utf-8").splitlines() if line[0] != "#"]
        exact = Requirement(pin)
        assert exact.name == wanted.name
        assert str(exact.specifier).startswith("==")
        assert wanted.specifier.contains(str(exact.specifier).removeprefix("=="))
        assert "==" not in str(wanted.specifier), "who installs the package chooses the version"
        return
    version, _ = locked[canonical(wanted.name)]
    assert wanted.specifier.contains(version, prereleases=True)


def test_every_package_has_hashes(locked):
    assert len(locked) > 50
    assert [name for name, (_, hashes) in locked.items() if not hashes] == []


def test_the_makefile_installs_what_is_locked():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = f"'.[{','.join(EXTRAS)}]'"
    assert extras in makefile
    assert "--require-hashes" in makefile
    installs = [line for line in makefile.splitlines() if "pip install" in line and "train" in line]
    assert len(installs) == 4
    assert all("--constraint torch.lock" in line for line in installs)
    assert all(f"--extra {name}" in makefile for name in EXTRAS)
