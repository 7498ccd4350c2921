from pathlib import Path

from wordreel.datasets.registry import DATASETS
from wordreel.datasets.table import filled, protocol_table

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_the_page_has_the_tables_of_the_data_files():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run: python -m wordreel.datasets.table docs/datasets.md"


def test_every_dataset_has_its_files_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert all(
        f"`{file}`" in page for data in DATASETS.values() for wanted in data.files for file in wanted.names
    )
    assert protocol_table().count("\n| ") == 16
