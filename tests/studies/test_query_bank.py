import numpy as np
import pytest
from common import T2V, V2T
from query_bank import Case, entries_of, study
from query_bank import tests as significance_tests
from query_bank_claims import FAILS, HOLDS, PARTLY, UNCLEAR, judge
from query_bank_text import plots_of, text_of

from wordreel.retrieval.caption_ranks import Captions, text_to_video


def row(section, bank, method, x, r1, **more):
    mean = {"r1": r1, "r5": r1, "r10": r1, "median_rank": 5.0}
    place = {"collection": "c", "direction": "t2v", "section": section, "bank": bank, "method": method}
    return {**place, "x": float(x), "mean": mean, **more}


def figures(far=9.8, far_is=8.0, sizes=(10.5, 11.0, 11.4, 11.5), after=0.5, p=0.01, k10=11.5):
    rows = [row("plain", "", "none", 0, 10.0, skewness=1.0, largest=50)]
    for bank, dis, plain_is in (("near", 11.5, 11.6), ("far", far, far_is)):
        for method, r1 in (("dis", dis), ("is", plain_is)):
            rows.append(row("all", bank, method, 1000, r1, skewness=after, largest=30, corrected=0.5))
            rows += [row("beta", bank, method, b, 10 + (r1 - 10) * (b >= 10)) for b in (1, 10, 15, 20, 30)]
        rows += [row("size", bank, "dis", x, y) for x, y in zip((100, 300, 1000, 3000), sizes, strict=True)]
        rows += [row("k", bank, "dis", k, y) for k, y in ((1, 11.5), (10, k10))]
        rows.append(row("method", bank, "cent", 1000, 9.0, skewness=1.0, largest=1))
    pairs = [("near", "dis"), ("near", "is"), ("far", "dis"), ("far", "is")]
    same = {"collection": "c", "direction": "t2v", "p_value": p}
    return {"rows": rows, "paired_with_first_weights": [{**same, "bank": b, "method": m} for b, m in pairs]}


def verdicts(**changed):
    return {claim: verdict for claim, (verdict, _) in judge(figures(**changed), "c", "t2v").items()}


def test_all_claims_hold_where_the_figures_are_the_papers():
    found = verdicts(far=10.2)
    assert set(found.values()) == {HOLDS}
    assert judge(figures(), "c", "v2t") == {}


@pytest.mark.parametrize(
    ("changed", "claim", "verdict"),
    [
        ({"p": 0.2}, "a bank of the same domain helps (DIS)", UNCLEAR),
        ({"far": 12.0}, "a bank of another domain helps less (DIS)", FAILS),
        ({"far": 9.0}, "a bank of another domain does no harm (DIS)", FAILS),
        ({"far": 9.0, "p": 0.2}, "a bank of another domain does no harm (DIS)", UNCLEAR),
        ({"far": 9.9}, "a bank of another domain does no harm (DIS)", HOLDS),
        ({"far_is": 9.0, "p": 0.2}, "a bank of another domain harms without the gate (IS)", UNCLEAR),
        ({"far_is": 10.4}, "a bank of another domain harms without the gate (IS)", FAILS),
        ({"sizes": (11.5, 11.0, 10.8, 10.5)}, "more bank queries are better", FAILS),
        ({"sizes": (10.5, 11.6, 11.1, 11.5)}, "more bank queries are better", PARTLY),
        ({"sizes": (10.0, 10.2, 10.4, 11.5)}, "the gain saturates", FAILS),
        ({"k10": 12.5}, "k = 1 is as good as any", FAILS),
        ({"after": 1.5}, "the k-occurrences become less skewed", FAILS),
    ],
)
def test_each_claim_can_fail(changed, claim, verdict):
    assert verdicts(**changed)[claim] == verdict


def test_a_small_study_from_end_to_end():
    rng = np.random.default_rng(0)
    owner = np.sort(rng.integers(0, 12, 60))
    sims = rng.normal(0, 0.15, (60, 12)).astype(np.float32)
    sims[np.arange(60), owner] += 0.2
    captions = Captions(12, owner, np.ones(60, bool))
    betas = {"dis": 20.0, "is": 15.0}
    banks = {name: rng.normal(0, 0.15, (120, 12)).astype(np.float32) for name in ("near", "far")}
    videos = {name: rng.normal(0, 0.15, (20, 60)).astype(np.float32) for name in ("near", "far")}
    cases = [
        Case("c", T2V, sims, captions, banks, betas),
        Case("c", V2T, np.ascontiguousarray(sims.T), captions, videos, betas),
    ]
    held, paired = {}, []
    for case in cases:
        study(case, held)
        paired += significance_tests(case)
    rows = entries_of(held)
    plain = next(r for r in rows if r["section"] == "plain" and r["direction"] == "t2v")
    assert plain["mean"]["r1"] == text_to_video(sims, captions).r1
    whole = {
        r["method"]: r
        for r in rows
        if r["section"] == "all" and r["bank"] == "near" and r["direction"] == "t2v"
    }
    for name in ("dis", "is"):
        size = [r for r in rows if (r["section"], r["bank"], r["method"]) == ("size", "near", name)]
        last = next(r for r in size if r["x"] == 120 and r["direction"] == "t2v")
        assert last["mean"] == whole[name]["mean"]
        draws = next(r for r in size if r["x"] == 100 and r["direction"] == "t2v")
        assert draws["runs"] == 3
        tested = next(t for t in paired if (t["bank"], t["method"], t["direction"]) == ("near", name, "t2v"))
        assert tested["difference"] == pytest.approx(whole[name]["mean"]["r1"] - plain["mean"]["r1"])
    chosen = [dict.fromkeys(("t2v", "v2t"), betas)]
    found = {
        "rows": rows,
        "paired_with_first_weights": paired,
        "beta_by_validation": chosen,
        "curves_with": 5_000,
    }
    text = text_of(found, {"c": "Case"})
    assert "### Case, text → video" in text
    assert "IS 15" in text
    assert set(plots_of(rows, {"c": "Case"})) == {
        f"c_{way}_{s}" for way in ("t2v", "v2t") for s in ("size", "beta", "k")
    }
