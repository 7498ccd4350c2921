"""A search worker whose model is that of the tests."""

from tests.serve.conftest import opened

from wordreel.serve.search_worker import main

if __name__ == "__main__":
    main(lambda order: opened(order["library"]))
