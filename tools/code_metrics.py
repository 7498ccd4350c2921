"""Report what the code base looks like in numbers, for one or several source trees side by side.

    python tools/code_metrics.py src/wordreel [OTHER/src/wordreel …]

Code lines are those with anything but docstrings, comments and blanks. An importer is a module of the tree
with an import statement that names the other, inside functions and for type checkers too. A docstring of a
public function or method counts as imperative where its first word can be the plain form of a verb.

A definition counts as unused where no other line of the tree names it (tests, studies and benchmarks do not
count), leaving out what frameworks call: commands, routes, dunder methods, nested functions and properties of
protocols. The unused definitions and the long functions of the last tree are listed below the table.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LONG = 80  # lines of a function
FRAMEWORK = ("command", "get", "post", "put", "delete", "patch", "websocket", "callback", "exception_handler",
             "api_route", "middleware")  # fmt: skip
# Methods of io, Starlette, pickle and typer, which call them.
OVERRIDES = (
    "seekable",
    "file_response",
    "find_class",
    "format_commands",
    "format_help_text",
)  # others call them
VAGUE = (
    "told", "kept", "place", "found", "made", "asked", "said", "shelf", "chief", "patient", "remember",
    "anew", "wish", "heed", "hints", "rooms", "shown", "sure",
)  # fmt: skip
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
NO_VERBS = {
    "a", "all", "an", "another", "any", "as", "at", "before", "both", "by", "each", "either", "entry",
    "every", "everything", "few", "first", "flat", "for", "from", "half", "how", "if", "in", "it", "item",
    "its", "last", "most", "neither", "no", "none", "not", "nothing", "of", "on", "one", "only", "our",
    "plain", "several", "since", "some", "text", "that", "the", "their", "these", "this", "those",
    "three", "two", "what", "whatever", "when", "where", "whether", "which", "white", "who", "whole",
    "whose", "why", "width", "with", "without", "x", "y",
}  # fmt: skip
VERBS_LIKE_NOUNS = {
    "address", "bias", "bring", "compress", "cross", "embed", "express", "feed", "focus", "guess",
    "mention", "pass", "press", "process", "seed",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Tree:
    """The figures of one source tree."""

    files: int = 0
    lines: int = 0
    code: int = 0
    small: int = 0  # files of fewer than 40 lines
    names: Counter[str] = field(default_factory=Counter)  # of files
    folders: Counter[Path] = field(default_factory=Counter)  # modules in each
    importers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    local_imports: int = 0
    docstrings: int = 0
    imperative: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    vague: int = 0
    long: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def rows(self) -> dict[str, str]:
        """Return what the table says of this tree."""
        repeated = [count for count in self.names.values() if count > 1]
        shared = {name: n for name, n in self.classes.items() if not name.startswith("_") and n > 1}
        folder, largest = max(self.folders.items(), key=lambda item: item[1], default=(Path(), 0))
        return {
            "code lines": f"{self.code:,}",
            "lines": f"{self.lines:,}",
            "files": f"{self.files:,}",
            "files under 40 lines": f"{self.small:,}",
            "file names that occur twice or more": f"{len(repeated):,}",
            "files with a repeated name": f"{sum(repeated):,}",
            "modules with one importer": f"{sum(len(found) == 1 for found in self.importers.values()):,}",
            "largest folder": f"{largest} ({folder.as_posix()})",
            "imports inside functions": f"{self.local_imports:,}",
            "docstrings in the imperative": f"{self.imperative / max(self.docstrings, 1):.1%}",
            "class names that mean several things": f"{len(shared):,}",
            "classes behind those names": f"{sum(shared.values()):,}",
            "vague identifiers": f"{self.vague:,}",
            f"functions over {LONG} lines": f"{len(self.long):,}",
            "definitions nothing refers to": f"{len(self.unused):,}",
        }


def measure(root: Path) -> Tree:
    """Return the figures of the package in a folder."""
    tree = Tree()
    words: Counter[str] = Counter()
    defined: list[tuple[str, str]] = []
    modules = {module_name(root, path): path for path in sorted(root.rglob("*.py"))}
    for module, path in modules.items():
        text = path.read_text("utf-8")
        parsed = ast.parse(text)
        tree.files += 1
        tree.lines += text.count("\n")
        tree.code += code_lines(text, parsed)
        tree.folders[path.parent.relative_to(root)] += 1
        if path.name != "__init__.py":
            tree.names[path.name] += 1
            tree.small += text.count("\n") < 40
        for target in imported(parsed, module, path.name == "__init__.py", modules):
            tree.importers[target].add(module)
        words.update(re.findall(r"\w+", text))
        count_definitions(tree, parsed, path)
        defined += [(f"{path}:{name}", name.rpartition(".")[2]) for name in definitions(parsed)]
    tree.unused = [where for where, name in defined if words[name] == 1]
    return tree


def module_name(root: Path, path: Path) -> str:
    """Return the dotted name of a file of the package in `root`.

    >>> module_name(Path("src/wordreel"), Path("src/wordreel/index/__init__.py"))
    'wordreel.index'
    """
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def code_lines(text: str, parsed: ast.Module) -> int:
    """Count the lines with anything but docstrings, comments and blanks."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(parsed):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def imported(parsed: ast.Module, module: str, is_package: bool, modules: dict[str, Path]) -> set[str]:
    """Return the modules of the tree that one of them imports."""
    names: set[str] = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level + is_package or None] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            inner = {f"{source}.{alias.name}" for alias in node.names}
            names.update(inner & modules.keys())
            if not inner <= modules.keys():
                names.add(source)
    return names & modules.keys() - {module}


def count_definitions(tree: Tree, parsed: ast.Module, path: Path) -> None:
    """Add what a module defines to the figures of its tree."""
    inner: set[ast.AST] = set()  # imports inside functions, those of nested functions once
    for node in ast.walk(parsed):
        tree.vague += any(name in VAGUE for name in identifiers(node))
        if isinstance(node, ast.ClassDef):
            tree.classes[node.name] += 1
        if not isinstance(node, Function):
            continue
        inner.update(part for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom))
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONG:
            tree.long.append(f"{path}:{node.name} ({length})")
        docstring = ast.get_docstring(node)
        is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        if docstring and not node.name.startswith("_") and not is_property:
            tree.docstrings += 1
            tree.imperative += is_imperative(docstring)
    tree.local_imports += len(inner)


def identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names that a definition, parameter or assignment introduces."""
    if isinstance(node, Function | ast.ClassDef):
        yield from (part for part in node.name.lower().split("_") if part)
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def is_imperative(docstring: str) -> bool:
    """Tell whether a docstring can begin with the plain form of a verb.

    >>> is_imperative("Return the rows."), is_imperative("Rows of a table."), is_imperative("`[n]` floats.")
    (True, False, False)
    """
    first, second = [*docstring.split(), ""][:2]
    word = first.rstrip(",:;").lower()
    if not word.isalpha() or word in NO_VERBS or second == "of":
        return False
    return not word.endswith(("s", "ed", "ing", "ity", "tion")) or word in VERBS_LIKE_NOUNS


def definitions(parsed: ast.Module) -> Iterator[str]:
    """Yield functions, classes and methods that nothing but code calls."""
    for node in parsed.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from (
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, Function) and not exempt(inner)
            )
        elif isinstance(node, Function) and not exempt(node):
            yield node.name


def exempt(node: Function) -> bool:
    """Tell whether a framework calls this function."""
    if node.name.startswith("__") or node.name in OVERRIDES:
        return True
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in FRAMEWORK)


def main() -> None:
    """Print the table of the trees that the command line names."""
    trees = [measure(Path(root)) for root in sys.argv[1:] or ["src/wordreel"]]
    tables = [tree.rows() for tree in trees]
    for name in tables[0]:
        print(f"| {name} | {' | '.join(rows[name] for rows in tables)} |")
    print("\n".join(trees[-1].unused + trees[-1].long))


if __name__ == "__main__":
    main()
