"""Figures of a package of a few lines, counted by hand."""

import pytest
from tools.code_metrics import is_imperative, main, measure

FILES = {
    "__init__.py": '"""A package."""\n\nfrom thing.index.base import Base\n\nUSED = Base\n',
    "index/__init__.py": "",
    "index/base.py": """\
\"\"\"Said of the module,
on two lines.\"\"\"

# A comment.
class Base:
    \"\"\"A class.\"\"\"

    text = \"\"\"not a docstring,
    but a value\"\"\"

    def rows(self):
        \"\"\"Return the rows.\"\"\"
        from thing.search import base
        from . import other

        return base, other, self.USED

    @property
    def size(self):
        \"\"\"The size.\"\"\"
        return self.rows()
""",
    "index/other.py": "import thing.search.base\n",
    "search/__init__.py": "",
    "search/base.py": 'def forgotten():\n    """Rows of a table."""\n',
}


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "thing"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_every_figure_is_that_of_a_count_by_hand(package):
    rows = measure(package).rows()
    assert rows["code lines"] == str(2 + 10 + 1 + 1)
    assert rows["lines"] == str(5 + 21 + 1 + 2)
    assert rows["files"] == "6"
    assert rows["files under 40 lines"] == "3"
    assert rows["file names that occur twice or more"] == "1"
    assert rows["files with a repeated name"] == "2"
    # index.base by the package, index.other by index.base; search.base has two.
    assert rows["modules with one importer"] == "2"
    assert rows["largest folder"] == "3 (index)"
    assert rows["imports inside functions"] == "2"
    assert rows["docstrings in the imperative"] == "50.0%"
    assert rows["definitions nothing refers to"] == "1"


def test_trees_stand_side_by_side(package, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["code_metrics.py", str(package / "index"), str(package)])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert "| files | 3 | 6 |" in lines
    assert lines[-1].endswith("base.py:forgotten")


@pytest.mark.parametrize("docstring", ["Return it.", "Process it.", "Embed, then store.", "List files."])
def test_verbs_are_imperative(docstring):
    assert is_imperative(docstring)


@pytest.mark.parametrize(
    "docstring", ["The rows.", "Whether it is.", "Returns rows.", "Similarity of two.", "Cosines.", "`[n]`."]
)
def test_other_beginnings_are_not(docstring):
    assert not is_imperative(docstring)
