"""`wordreel`, whose model is the one of the examples: python serve_colours.py serve -L FOLDER …"""

from typing import Any

from tests.example_library import ColourModel

from wordreel.cli import main
from wordreel.models import model_store


def open_colours(*_: Any, **__: Any) -> ColourModel:
    return ColourModel()


if __name__ == "__main__":
    model_store.open_model = open_colours
    main()
