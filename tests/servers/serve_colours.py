"""`wordreel`, whose model is the one of the examples: python serve_colours.py serve -L FOLDER …"""

from tests.example_library import ColourModel

from wordreel.cli import main
from wordreel.models import model_store

if __name__ == "__main__":
    model_store.open_model = lambda store, weights: ColourModel()
    main()
