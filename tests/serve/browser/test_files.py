"""The page's files: small, whole, their own, and within the content-security policy."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import wordreel

PAGE = Path(wordreel.__file__).parent / "serve" / "page"
MODULES = sorted((PAGE / "js").glob("*.js"))
BUDGET = 80_000  # bytes, compressed; the promise is 250,000

PARSE = """
const { readFileSync } = require("node:fs");
const { SourceTextModule } = require("node:vm");
const files = process.argv.slice(1);
for (const file of files) new SourceTextModule(readFileSync(file, "utf8"), { identifier: file });
process.stdout.write(String(files.length));
"""


def texts() -> list[Path]:
    return [path for path in PAGE.rglob("*") if path.is_file()]


def test_every_module_parses() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node to check the syntax of the page's modules")
    command = [node, "--experimental-vm-modules", "--no-warnings", "-e", PARSE, *map(str, MODULES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{len(MODULES)}"), done.stderr


def test_the_first_load_is_small() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in texts()}
    assert sum(sizes.values()) < BUDGET, sizes


def test_no_file_names_another_host() -> None:
    named = {
        path.name: found
        for path in texts()
        if (found := re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}[^\s\"']*", path.read_text("utf-8")))
        and not all("www.w3.org" in address for address in found)  # the name of SVG, never fetched
    }
    assert not named


def test_nothing_needs_an_exception_from_the_policy() -> None:
    html = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\s(?:on\w+|style)=", html)
    for module in MODULES:
        source = module.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", source
        ), module


def test_every_import_is_there_and_every_module_is_imported() -> None:
    wanted = {"early.js", "main.js"}
    for module in MODULES:
        for name in re.findall(r'from "\./([\w.]+)"', module.read_text("utf-8")):
            assert (PAGE / "js" / name).is_file(), f"{module.name} imports {name}"
            wanted.add(name)
    assert wanted == {module.name for module in MODULES}


def test_every_imported_name_is_exported_and_used() -> None:
    for module in MODULES:
        source = module.read_text("utf-8")
        for names, origin in re.findall(r'import \{([^}]+)\} from "\./([\w.]+)"', source):
            there = (PAGE / "js" / origin).read_text("utf-8")
            for name in re.split(r",\s*", names.strip()):
                original, _, alias = name.partition(" as ")
                assert re.search(rf"export (?:async )?(?:function|const|class|let) {original}\b", there), (
                    module.name,
                    name,
                )
                assert len(re.findall(rf"\b{alias or original}\b", source)) > 1, (module.name, name)
