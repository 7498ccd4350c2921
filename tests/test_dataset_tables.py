from pathlib import Path

from tools.dataset_tables import fill_tables, protocol_table

from wordreel.lab.datasets.registry import DATASETS

PAGE = Path(__file__).parents[1] / "docs" / "datasets.md"


def test_the_page_has_the_tables_of_the_data_files():
    page = PAGE.read_text(encoding="utf-8")
    assert fill_tables(page) == page, "run: python -m tools.dataset_tables docs/datasets.md"


def test_every_dataset_has_its_files_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert all(
        f"`{file}`" in page
        for data in DATASETS.values()
        for annotation in data.files.values()
        for file in annotation.names
    )
    assert protocol_table().count("\n| ") == 17
