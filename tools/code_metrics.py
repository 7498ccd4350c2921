"""What the code base looks like in numbers, for one or several source trees side by side.

    python tools/code_metrics.py src/wordreel [OTHER/src/wordreel …]

A definition counts as unused where no other line of the tree names it (tests, studies and benchmarks do not
count), leaving out what frameworks call: commands, routes, dunder methods, nested functions and properties of
protocols. The unused definitions of the last tree are listed below the table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LONG = 80  # lines of a function
VAGUE = (
    "told", "kept", "place", "found", "made", "asked", "said", "shelf", "chief", "patient", "remember",
    "anew", "wish", "heed", "hints", "rooms", "shown", "sure",
)  # fmt: skip
FRAMEWORK = ("command", "get", "post", "put", "delete", "patch", "websocket", "callback", "exception_handler",
             "api_route", "middleware")  # fmt: skip
OVERRIDES = ("seekable", "file_response", "persistent_load")  # of io, Starlette and pickle, which call them


@dataclass
class Tree:
    """The figures of one source tree."""

    files: int = 0
    lines: int = 0
    small: int = 0  # files of fewer than 40 lines
    classes: Counter[str] = field(default_factory=Counter)
    long: list[str] = field(default_factory=list)
    vague: int = 0
    unused: list[str] = field(default_factory=list)

    def row(self) -> dict[str, int]:
        public = {name: n for name, n in self.classes.items() if not name.startswith("_") and n > 1}
        return {
            "files": self.files,
            "files under 40 lines": self.small,
            "lines": self.lines,
            "class names that mean several things": len(public),
            "classes behind those names": sum(public.values()),
            f"functions over {LONG} lines": len(self.long),
            "vague identifiers": self.vague,
            "definitions nothing refers to": len(self.unused),
        }


def measure(root: Path) -> Tree:
    tree = Tree()
    names: Counter[str] = Counter()
    defined: list[tuple[str, str]] = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text("utf-8")
        count = text.count("\n")
        tree.files += 1
        tree.lines += count
        tree.small += count < 40 and path.name != "__init__.py"
        parsed = ast.parse(text)
        names.update(re.findall(r"\w+", text))
        for node in ast.walk(parsed):
            if isinstance(node, ast.ClassDef):
                tree.classes[node.name] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONG:
                    tree.long.append(f"{path}:{node.name} ({length})")
            tree.vague += any(name in VAGUE for name in identifiers(node))
        defined += [(f"{path}:{name}", name.rpartition(".")[2]) for name in definitions(parsed)]
    tree.unused = [where for where, name in defined if names[name] == 1]
    return tree


def identifiers(node: ast.AST) -> Iterator[str]:
    """The names a definition, parameter or assignment introduces."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield from (part for part in node.name.lower().split("_") if part)
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def definitions(parsed: ast.Module) -> Iterator[str]:
    """Functions, classes and methods that nothing but code calls."""
    for node in parsed.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from (
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not exempt(inner)
            )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not exempt(node):
            yield node.name


def exempt(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if node.name.startswith("__") or node.name in OVERRIDES:
        return True
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in FRAMEWORK)


def main() -> None:
    trees = [measure(Path(root)) for root in sys.argv[1:] or ["src/wordreel"]]
    rows = [tree.row() for tree in trees]
    for name in rows[0]:
        print(f"| {name} | {' | '.join(f'{row[name]:,}' for row in rows)} |")
    print("\n".join(trees[-1].unused + trees[-1].long))


if __name__ == "__main__":
    main()
