"""The process of a search worker: requests are lines on standard input, answers go to standard output.

    first line   {"library", "weights", "read_only", "version"}           → {"ready": true}
    request      {"version", "request"}     → {"bytes", "waiting"} and the bytes
    request      {"version"}                → {"ready": true}, when that version is open

A request that fails is answered by {"failed": true}: the server then answers it by itself, and has the error.
When standard input ends, the server is gone and this process exits.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordreel.api import Library
    from wordreel.serve.schemas import SearchRequest

TRACK_BYTES = 16 * 2**20  # cached; searches for words read each once, and cache what explains a hit


def open_library(order: dict[str, Any]) -> Library:
    from wordreel.api import Library
    from wordreel.runtime.store import WeightStore

    return Library(order["library"], create=False, weights=WeightStore(Path(order["weights"])))


def main(open_library: Callable[[dict[str, Any]], Library] = open_library) -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not be read as an answer
    order = json.loads(requests.readline())
    work(open_library(order), order["read_only"], order["version"], requests, answers)


def work(
    library: Library, read_only: bool, version: list[int], requests: Iterable[bytes], answers: IO[bytes]
) -> None:
    """Answer requests until there are no more."""
    from wordreel.library.uploads import upload_names
    from wordreel.search.query_terms import resolve_terms
    from wordreel.serve.current_model import CurrentModel
    from wordreel.serve.live import LiveSearcher
    from wordreel.serve.schemas import SearchRequest
    from wordreel.serve.search_answer import answer_search, as_written
    from wordreel.serve.track_cache import TrackCache

    store = library.store
    store.load_track = TrackCache(store.load_track, TRACK_BYTES)
    model = CurrentModel(store, library.weights, library.model)
    live = LiveSearcher(store, model, read_only=read_only)
    uploaded = upload_names(store)

    def answer(request: SearchRequest) -> tuple[dict[str, Any], bytes]:
        query = resolve_terms(store, as_written(request))
        found = answer_search(live.now.check(), request, query, uploaded)
        return {"bytes": len(found.json), "waiting": sorted(found.waiting)}, found.json

    def send(head: dict[str, Any], body: bytes = b"") -> None:
        answers.write(json.dumps(head).encode() + b"\n" + body)
        answers.flush()

    send({"ready": True})
    for line in requests:
        order = json.loads(line)
        head, body = {"ready": True}, b""
        try:
            if order["version"][0] != version[0]:
                uploaded = upload_names(store)
                live.reopen()
            elif order["version"] != version:
                live.banks_changed()
            version = order["version"]
            if "request" in order:
                head, body = answer(SearchRequest.model_validate(order["request"]))
        except Exception:  # whatever it is, the server meets it as well, and reports it
            head, body = {"failed": True}, b""
        send(head, body)


if __name__ == "__main__":
    main()
