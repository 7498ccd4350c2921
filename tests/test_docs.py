"""The documentation names commands, options, files, links and Python names that exist. No command is run."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import wordreel
from wordreel.cli.app import app
from wordreel.lab.datasets import protocols
from wordreel.lab.training import recipe

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/tutorials/*.md",
        "studies/*.md",
        "benchmarks/*.md",
        "results/*.md",
    )
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
REPOSITORY_PATH = re.compile(
    r"^(?:src|tests|docs|studies|benchmarks|results|tools)/[\w./-]*$|^\w[\w-]*\.(?:md|toml|cff)$|^Makefile$"
)
PACKAGE_PATH = re.compile(r"^[a-z_0-9/]+(?:\.py|/)$")
OTHER_PROGRAMS = {
    "studies/README.md",
    "benchmarks/README.md",
    "CHANGELOG.md",
}  # name options not of `wordreel` alone
NEED_TORCH = {"docs/lab_models.md", "docs/lab_training.md"}


def commands_of_app() -> dict[tuple[str, ...], Any]:
    """Every command and group of the app by its verbs: ('bank', 'build')."""

    def walk(command: Any, verbs: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield verbs, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*verbs, name))

    return dict(walk(get_command(app), ()))


COMMANDS = commands_of_app()
VERBS = {verbs[0] for verbs in COMMANDS if verbs}
ROOT_OPTIONS = ("--version", "--install-completion")


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def prose(text: str) -> str:
    """The page without its fenced blocks and its HTML comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)


def spans(text: str) -> list[str]:
    return [" ".join(span.split()) for span in SPAN.findall(prose(text))]


def blocks(text: str, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(text) if language in languages]


def command_lines(text: str) -> list[str]:
    """Command lines of wordreel in shell blocks and in inline code, without the program's name."""
    lines = []
    for block in blocks(text, "", "sh", "bash", "shell", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r";|&&|\|", re.sub(r"(^|\s)#.*$", "", line)):
                match = re.search(r"(?:^|\s)wordreel\s+(.*)$", part)
                if match and not re.search(r"\bpip3? install\b", part):
                    lines.append(match[1].strip())
    for span in spans(text):
        first, _, rest = span.partition(" ")
        if first == "wordreel" and rest:
            lines.append(rest)
        elif first in VERBS and "--" in rest:  # `search --norm`, in a sentence
            lines.append(span)
    return lines


def resolve(line: str) -> tuple[tuple[str, ...], list[str]]:
    """The verbs of a command line and its problems."""
    if line in ROOT_OPTIONS:
        return (), []
    try:
        words = shlex.split(line.replace("…", " "))
    except ValueError:
        return (), [f"`wordreel {line}`: not a shell command"]
    verbs: tuple[str, ...] = ()
    while words and (*verbs, words[0]) in COMMANDS:
        verbs = (*verbs, words.pop(0))
    if not verbs:
        return (), [] if words and words[0] == "--help" else [f"`wordreel {line}`: no such command"]
    command = COMMANDS[verbs]
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        return verbs, [f"`wordreel {line}`: `{verbs[0]}` has no command {words[0]!r}"]
    known = options_of(verbs)
    given = [
        option for word in words if re.match(r"--?[A-Za-z]", word) for option in word.split("=")[0].split("/")
    ]
    return verbs, [f"`wordreel {line}`: no option {option}" for option in given if option not in known]


def command_problems(text: str) -> list[str]:
    return [problem for line in command_lines(text) for problem in resolve(line)[1]]


def options_of(verbs: tuple[str, ...]) -> set[str]:
    """The options of a command, or of all commands of a group."""
    return {"--help"} | {
        option
        for known, command in COMMANDS.items()
        if known[: len(verbs)] == verbs
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def option_problems(text: str) -> list[str]:
    """Options in inline code that no command has which the page names."""
    named = {resolve(line)[0] for line in command_lines(text)} | {(s,) for s in spans(text) if s in VERBS}
    known = {option for verbs in named if verbs for option in options_of(verbs)}
    words = [word for span in spans(text) if span.startswith("--") for word in re.split(r"[ =/]", span)]
    return [
        f"{word}: no command of this page has it"
        for word in words
        if word.startswith("--") and word not in known
    ]


def link_problems(text: str, folder: Path) -> list[str]:
    targets = [target.split("#")[0] for target in LINK.findall(prose(text)) if "://" not in target]
    generated = {"cli.md"}  # written by docs/hooks.py
    return [t for t in targets if t and Path(t).name not in generated and not (folder / t).exists()]


def path_problems(text: str) -> list[str]:
    """Files of the repository that inline code names and that do not exist."""
    named = [span for span in spans(text) if "NAME" not in span and "*" not in span]
    return [s for s in named if REPOSITORY_PATH.match(s) and "/" in s and not (ROOT / s).exists()]


def source_path_problems(text: str) -> list[str]:
    """As path_problems, for modules named relative to the package or the root."""
    named = [s for s in spans(text) if PACKAGE_PATH.match(s) or REPOSITORY_PATH.match(s)]
    roots = (ROOT, ROOT / "src/wordreel")
    return [span for span in named if not any((root / span).exists() for root in roots)]


def python_problems(code: str) -> list[str]:
    """Names of wordreel that a Python block imports or uses and that do not exist."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    problems = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wordreel":
            module = import_or_skip(node.module or "")
            names = [alias.name for alias in node.names]
            missing = [
                name for name in names if not (hasattr(module, name) or is_module(f"{node.module}.{name}"))
            ]
            problems += [f"{node.module} has no {name}" for name in missing]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "wordreel":
            known = hasattr(wordreel, node.attr) or is_module(f"wordreel.{node.attr}")
            problems += [] if known else [f"wordreel has no {node.attr}"]
    return problems


def import_or_skip(module: str) -> Any:
    """The module, None where wordreel has none; skips where another package is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "wordreel":
            return None
        pytest.skip(f"{module} needs {error.name}")


def is_module(name: str) -> bool:
    return import_or_skip(name) is not None


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page: str) -> None:
    assert command_problems(read(page)) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OTHER_PROGRAMS])
def test_options_exist(page: str) -> None:
    assert option_problems(read(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert link_problems(read(page), (ROOT / page).parent) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_named_files_exist(page: str) -> None:
    assert path_problems(read(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_compile_and_import_names_that_exist(page: str) -> None:
    assert [problem for code in blocks(read(page), "python") for problem in python_problems(code)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "```pycon" in read(page)])
def test_examples_print_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in NEED_TORCH:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    examples = "\n".join(blocks(read(page), "pycon"))
    test = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.DocTestRunner(optionflags=flags).run(test)
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_registries_of_the_reference_have_modules() -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    named = {name for page in PAGES for name in hooks.API.findall(read(page))}
    assert {"wordreel.hubness.METHODS", "wordreel.lab.training.data"} <= named
    for name in named:
        assert all(module.startswith("wordreel.") for module in hooks.documented_modules(name))
        assert hooks.documented_modules(name)


@pytest.mark.parametrize("page", PAGES)
def test_api_references_exist(page: str) -> None:
    for name in re.findall(r"^::: ([\w.]+)$", read(page), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        assert is_module(name) or hasattr(import_or_skip(module), attribute), name


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    text = read(page)
    named = set(re.findall(r"^make ([\w-]+)", "\n".join(blocks(text, "")), re.MULTILINE))
    named |= {match[1] for span in spans(text) if (match := re.fullmatch(r"make ([\w-]+)", span))}
    assert named <= targets


def test_every_command_is_documented() -> None:
    named = {
        resolve(line)[0] for page in PAGES if page != "CHANGELOG.md" for line in command_lines(read(page))
    }
    leaves = {verbs for verbs, command in COMMANDS.items() if not hasattr(command, "commands")}
    assert leaves - named == set()


def test_the_page_of_commands_lists_every_verb() -> None:
    listed = {resolve(line)[0][0] for line in command_lines(read("docs/commands.md")) if resolve(line)[0]}
    assert listed == VERBS


def test_the_page_of_commands_lists_every_variable() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    between_processes = {"WORDREEL_SERVER"}
    named = set(re.findall(r"\bWORDREEL_[A-Z_]+\b", source)) - between_processes
    assert named == set(re.findall(r"^\| `(WORDREEL_[A-Z_]+)`", read("docs/commands.md"), re.MULTILINE))


def test_api_page_lists_the_public_api() -> None:
    listed = re.findall(r"^::: wordreel\.(\w+)$", read("docs/api.md"), re.MULTILINE)
    assert sorted(listed) == sorted(set(wordreel.__all__) - {"__version__"})


def test_contributing_names_files_and_packages_that_exist() -> None:
    text = read("CONTRIBUTING.md")
    assert source_path_problems(text) == []
    packages = {path.parent.name for path in (ROOT / "src/wordreel").glob("*/__init__.py")}
    rows = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == packages | {"doctor", "library"}  # modules that the import order names


def test_changelog_starts_with_the_version_of_the_package() -> None:
    versions = re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == wordreel.__version__
    assert versions == sorted(versions, reverse=True)


def test_nav_lists_every_page() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages | {"cli.md"} == set(re.findall(r": ([\w/]+\.md)$", read("mkdocs.yml"), re.MULTILINE))


@pytest.mark.parametrize(
    "text",
    [
        "```\nwordreel serach 'a cat'\n```",
        "```\nwordreel search 'a cat' --limt 3\n```",
        "```\nwordreel train features x --data D \\\n  --rate 3\n```",
        "```\nwordreel bank bild\n```",
        "Run `wordreel search --limt 3`.",
        "Use `search --limt 3`.",
        "```\ntorchrun --no-python wordreel trian mmt\n```",
    ],
)
def test_a_wrong_command_is_noticed(text: str) -> None:
    assert len(command_problems(text)) == 1


def test_other_mistakes_are_noticed() -> None:
    assert option_problems("`wordreel search` takes `--limit 3`, `--limt` and `--foldr`.") == [
        "--limt: no command of this page has it",
        "--foldr: no command of this page has it",
    ]
    assert link_problems("[here](README.md) [there](nowhere.md) [web](https://x.org/y)", ROOT) == [
        "nowhere.md"
    ]
    assert path_problems("`src/wordreel/types.py` and `src/wordreel/typos.py`") == ["src/wordreel/typos.py"]
    assert source_path_problems("`media/types.py`, `media/tipes.py`, `READYOU.md`") == [
        "media/tipes.py",
        "READYOU.md",
    ]
    assert python_problems("from wordreel import Library, Librarian") == ["wordreel has no Librarian"]
    assert python_problems("import wordreel\nwordreel.Librarian()") == ["wordreel has no Librarian"]
    assert python_problems("from wordreel.librarian import x") == ["wordreel.librarian has no x"]
    assert python_problems("for") == ["line 1: invalid syntax"]


def test_a_right_command_passes() -> None:
    text = (
        "```\nwordreel add A; wordreel search 'a cat' -n 3  # --nothing\n```\n`wordreel bank build`, `pip x`"
    )
    assert command_problems(text) == []
    assert len(command_lines(text)) == 3


def test_server_page_lists_the_endpoints() -> None:
    """Every address of the API is in the table, and no other; the names of path parameters are free."""
    pytest.importorskip("fastapi")
    from wordreel.serve import routes

    served = set()
    for module in pkgutil.iter_modules(routes.__path__, f"{routes.__name__}."):
        for route in importlib.import_module(module.name).router.routes:
            served.add(re.sub(r"\{\w+(:\w+)?\}", "{}", route.path))
    rows = re.findall(r"^\| (`[A-Z].*?) \| ", read("docs/serve.md"), re.MULTILINE)
    named = [span for row in rows for span in spans(row) if "/" in span]
    listed = {re.sub(r"\{\w+\}", "{}", span.split(" ")[-1]) for span in named}
    assert listed == served


def named_by(verb: str, text: str) -> list[tuple[str, list[str]]]:
    """The first argument of each command line of a verb, and the values of its `--set`."""
    lines = [shlex.split(line.replace("…", " ")) for line in command_lines(text)]
    verbs = verb.split()
    own = [words[len(verbs) :] for words in lines if words[: len(verbs)] == verbs]
    return [
        (words[0], [words[at + 1] for at, word in enumerate(words) if word == "--set"])
        for words in own
        if words and re.fullmatch(r"[a-z][a-z0-9-]*", words[0])
    ]


@pytest.mark.parametrize("page", PAGES)
def test_recipes_settings_and_protocols_exist(page: str) -> None:
    for verb in ("features", "library", "videos", "packed"):
        for name, settings in named_by(f"train {verb}", read(page)):
            recipe.load(name, settings)  # raises where there is none
    for name, _ in named_by("evaluate captions", read(page)) + named_by("evaluate pictures", read(page)):
        protocols.load(name)


def test_a_wrong_recipe_or_setting_is_noticed() -> None:
    command = "`wordreel train library own-ce --set run.epochs=5`"
    assert named_by("train library", command) == [("own-ce", ["run.epochs=5"])]
    with pytest.raises(wordreel.TrainingError):
        recipe.load("own-cee", [])
    with pytest.raises(wordreel.TrainingError):
        recipe.load("own-ce", ["run.epoch=5"])
    with pytest.raises(wordreel.DatasetError):
        protocols.load("msvdd")
