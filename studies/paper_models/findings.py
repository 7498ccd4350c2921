"""What the papers found, as pairs of our rows: `better` should be above every one of `worse`."""

from __future__ import annotations

from dataclasses import dataclass

from paper_models.material import EXPERTS

CE, MMT, QB = "CE", "MMT", "QB-Norm"


@dataclass(frozen=True)
class Finding:
    paper: str
    claim: str
    better: str
    worse: tuple[str, ...]
    way: str = "t2v"
    worse_way: str = "t2v"


def _normed(name: str, title: str, way: str, words: str) -> Finding:
    return Finding(QB, f"{title}: QB-Norm gains, {words}", name, (name,), f"{way} QB-Norm", way)


FINDINGS: tuple[Finding, ...] = (
    Finding(CE, "CE is better than MoEE", "ce", ("moee",)),
    Finding(CE, "MoEE is better than concatenation", "moee", ("concat",)),
    Finding(CE, "collaborative gating helps (CE against CE − CG)", "ce", ("ce-without-gating",)),
    Finding(CE, "CE − CG is better than CE − MW, P, CG", "ce-without-gating", ("ce-plain",)),
    Finding(CE, "learned mixture weights help (MoEE against CE − MW, P, CG)", "moee", ("ce-plain",)),
    Finding(CE, "many captions are better than one, all experts", "ce", ("ce-one-caption",)),
    Finding(CE, "many captions are better than one, one expert", "ce-clip", ("ce-clip-one-caption",)),
    Finding(CE, "many captions are better than one, MMT", "mmt", ("mmt-one-caption",)),
    Finding(CE, "all experts are better than the best one", "ce", tuple(f"ce-{e}" for e in EXPERTS)),
    Finding(
        CE,
        "one caption: all experts are better than one",
        "ce-one-caption",
        ("ce-clip-one-caption",),
    ),
    *(Finding(CE, f"{expert} adds to clip", f"ce-clip-{expert}", ("ce-clip",)) for expert in EXPERTS[1:]),
    Finding(MMT, "MMT is better than CE", "mmt", ("ce",)),
    Finding(MMT, "MMT is better than collaborative gating of the same (COLL)", "mmt", ("mmt-coll",)),
    Finding(MMT, "MMT on pooled input is better than COLL", "mmt-pooled", ("mmt-coll",)),
    Finding(MMT, "COLL is better than no encoder (NONE)", "mmt-coll", ("mmt-none",)),
    Finding(MMT, "all features are better than pooled ones", "mmt", ("mmt-pooled",)),
    Finding(MMT, "ordered features are better than shuffled ones", "mmt", ("mmt-shuffled",)),
    *(
        _normed(name, title, way, words)
        for name, title in (("ce", "CE"), ("moee", "MoEE"), ("mmt", "MMT"))
        for way, words in (("t2v", "text to video"), ("v2t", "video to text"))
    ),
)
