"""Films made on the spot, which real experts look at."""

import pytest

from wordreel.demo.film import title_card, write_film


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    for number, line in enumerate(["Apple pie", "Steam searcher", "Moon landing"]):
        write_film(folder / f"{number}.mp4", title_card([line], 2, (40 * number, 60, 90)))
    return folder
