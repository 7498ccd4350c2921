"""Banks, the log of queries and hubness over HTTP."""

import numpy as np
import pytest

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.catalogue.banks import read_bank
from wordreel.catalogue.store import LibraryStore
from wordreel.hubness.measures import skewness
from wordreel.serve.query_log import SETTLED, QueryLog
from wordreel.serve.schemas import SearchResponse

TEXTS = [f"{a} and {b} {c}" for a in ("red", "green", "blue") for b in ("red", "blue") for c in range(20)]


@pytest.fixture
def banked(site):
    job = site.post("/api/banks", {"name": "mine", "source": {"texts": TEXTS}}).json["job"]
    assert site.ended(job)["state"] == "done"
    return site


def test_a_bank_is_made_used_and_forgotten(banked):
    (bank,) = banked.get("/api/banks").json["banks"]
    assert (bank["name"], bank["size"], bank["checked"]) == ("mine", 120, None)
    assert banked.get("/api/status").json["banks"] == [bank]
    assert banked.post("/api/banks", {"name": "mine"}).code == "bank_exists"
    assert banked.post("/api/banks", {"name": "a/b"}).code == "bad_bank"
    found = banked.get("/api/search?text=red&norm=is&beta=5").json
    assert "method=is" in found["norm"]
    assert found["hits"][0]["confidence"] is not None
    assert banked.get("/api/search?text=red").json["note"]
    assert all(
        h["confidence"] >= 0.2 for h in banked.get("/api/search?text=red&min_confidence=0.2").json["hits"]
    )
    both = banked.get("/api/search?text=red&norm=is&beta=5&compare=true").json
    assert SearchResponse.model_validate(both).model_dump(mode="json") == both
    assert [h["norm"] for h in both["plain"]] == ["none"] * 4
    assert {h["norm"] for h in both["hits"]} == {found["norm"]}
    assert [h["content"] for h in both["hits"]] == [h["content"] for h in found["hits"]]
    assert banked.ask("DELETE", "/api/banks/mine").json == {"ok": True}
    assert banked.ask("DELETE", "/api/banks/mine").code == "not_found"
    assert banked.get("/api/search?text=red&norm=is").code == "bad_bank"
    assert banked.post("/api/banks/mine/check", {"captions": {"a": ["b"]}}).code == "not_found"


def test_hubness_equals_the_slow_count(banked):
    found = banked.get("/api/hubness?norm=is").json
    assert found["k"] == 1  # a tenth of four videos, but one at least
    state = banked.service.live.now
    searcher = state.searcher
    work = EmbeddedBank.open(searcher, read_bank(banked.service.store, "mine"))
    queries = work.current()
    bias = state.searcher.scoring("is", "mine").norm.correction.bias
    for name, correction in (("before", 0), ("after", bias)):
        counts = dict.fromkeys(searcher.snapshot.contents(), 0)
        for vector, weight in zip(queries.vectors, queries.weights, strict=True):
            scores = {}
            for row, item in enumerate(searcher.snapshot.items):
                shares = weight * searcher.snapshot.gallery.available[row]
                value = (shares * (vector * searcher.snapshot.gallery.vectors[row]).sum(axis=1)).sum() / max(
                    shares.sum(), 1e-9
                )
                value -= np.broadcast_to(correction, len(searcher))[row]
                scores[item.content] = max(scores.get(item.content, -np.inf), value)
            for content in sorted(scores, key=lambda c: -scores[c])[: found["k"]]:
                counts[content] += 1
        assert found[name]["skewness"] == pytest.approx(skewness(np.array(list(counts.values()))))
        assert sum(found[name]["histogram"]) == 4
        for hub in found["hubs"]:
            assert hub[f"count_{name}"] == counts[hub["content"]]
            assert hub["kind"] == "video"
    assert banked.get("/api/hubness?bank=nobody").code == "not_found"
    worse = found["after"]["skewness"] > found["before"]["skewness"]
    assert ("better leave it out" in found["note"]) is worse
    assert "may make results worse" in banked.get("/api/search?text=red&norm=is").json["note"]


def test_no_bank_no_hubness(site):
    assert site.get("/api/hubness").code == "no_bank"


def test_queries_are_logged_only_if_wanted(site, monkeypatch):
    monkeypatch.setattr("wordreel.serve.query_log.SETTLED", 0.0)
    assert site.get("/api/settings").json == {"log_queries": False, "log_bank": "asked"}
    site.get("/api/search?text=red+secret")
    assert site.ask("PUT", "/api/settings", {"log_queries": True, "log_bank": "log"}).json["log_queries"]
    site.get("/api/search?text=blue+birds")
    found = site.until("/api/banks", lambda f: f["banks"])["banks"]
    assert (found[0]["name"], found[0]["size"]) == ("log", 1)
    assert read_bank(site.service.store, "log").texts == ("blue birds",)
    site.ask("PUT", "/api/settings", {"log_queries": False})
    site.get("/api/search?text=green+grass")
    assert site.service.query_log.flush() == 0
    assert site.ask("PUT", "/api/settings", {"log_queries": True, "log_bank": "a/b"}).code == "bad_bank"


def test_what_is_typed_is_logged_once(library):
    now = [0.0]
    with LibraryStore.open(library) as store:
        log = QueryLog(store, lambda: now[0])
        log.set(True, "log")
        for text in ("a", "a d", "a dog", "a dog runs"):
            log.record("me", text)
            assert log.flush() == 0
        log.record("you", "a cat")
        log.record("me", "trains")  # another question: the one before was finished
        assert log.flush() == 1
        now[0] += SETTLED + 1
        assert log.flush() == 2
        assert set(read_bank(store, "log").texts) == {"a dog runs", "a cat", "trains"}
        log.record("me", "while busy")
        now[0] += SETTLED + 1
        with LibraryStore.open(library) as other, other.writing():
            assert log.flush() == 0
        assert log.flush() == 1
        assert QueryLog(store).on
