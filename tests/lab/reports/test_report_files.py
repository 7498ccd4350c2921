import json
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.hubness import make_method
from wordreel.lab.evaluate.normalised_rankings import Normalisation
from wordreel.lab.evaluate.runs import measure
from wordreel.lab.reports import report_files
from wordreel.lab.reports.report import EvaluationReport, ReportRequest, of_matrix
from wordreel.lab.reports.tables import by_expert, by_length, latex, markdown, plain_text, rows_of
from wordreel.retrieval.caption_ranks import arrange

HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[31m"
VOID = {"meta", "img", "br"}


def named_report(videos=12, each=3, seed=0):
    """As a library's, with names that try to break out of the page."""
    rng = np.random.default_rng(seed)
    captions = arrange(videos, videos * each)
    sims = rng.normal(0, 0.2, (videos * each, videos)) + 0.4 * np.repeat(np.eye(videos), each, axis=0)
    bank = rng.normal(0, 0.2, (40, videos))
    texts = [f"query {n} {HOSTILE}" for n in range(videos * each)]
    names = [f"clip{n}{HOSTILE}" for n in range(videos)]
    runs = measure(sims, captions, normalisations=[Normalisation(make_method("is"), bank, HOSTILE)])
    queries = report_files.queries_of(captions.owner, texts, names)
    measured = {
        "kind": "library",
        "model": HOSTILE,
        "fingerprint": "0" * 16,
        "videos": videos,
        "captions": len(captions),
        "missing": 2,
        "deviations": ["12 items instead of 670"],
        **report_files.digests(queries),
    }
    groups = {
        "length": by_length(runs[0], texts),
        "experts": by_expert(runs[0], captions.owner, {"ocr": [n % 2 == 0 for n in range(videos)]}),
    }
    inputs = [{"what": "captions", "name": HOSTILE, "sha256": "ab" * 32}]
    facts = report_files.facts_of(
        HOSTILE, f"wordreel evaluate {HOSTILE}", inputs, measured, runs, groups, [7]
    )
    return EvaluationReport(facts, tuple(runs), queries)


def write_without_page(report, prefix):
    """Drawing the page takes longer than all the rest."""
    report_files.write(prefix, report.facts, report.runs, report.queries, "")


class Reader(HTMLParser):
    """Checks that tags are balanced, and gathers addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.addresses, self.handlers, self.text = [], set(), [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def charts_of(page):
    drawn = [address for address in read_page(page).addresses if "svg" in address]
    return "".join(b64decode(address.partition(",")[2]).decode() for address in drawn)


def read_page(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_stands_alone():
    report = named_report()
    page = report.page()
    reader = read_page(page)
    assert not reader.tags & {"script", "link", "iframe", "object", "embed", "form", "a", "base"}
    assert reader.handlers == []
    assert reader.addresses
    assert {address.partition(",")[0] for address in reader.addresses} == {"data:image/svg+xml;base64"}
    assert "default-src 'none'" in page
    assert "url(" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_tells_what_it_is_made_from():
    report = named_report()
    text = " ".join(read_page(report.page()).text)
    for part in ("ab" * 32, "12 items instead of 670", "7", "post-processing: none", "querybank("):
        assert part in text
    for heading in (
        "Recall at K",
        "By the length of the query",
        "Hubness",
    ):
        assert heading in text
    assert "plain: skewness" in charts_of(report.page())
    assert "is: skewness" in charts_of(report.page())
    assert f"{report.runs[0].metrics.r1:.1f}" in text
    # Plain numbers come first.
    assert text.index("post-processing: none") < text.index("post-processing: querybank(")


def test_the_same_report_is_the_same_page():
    assert named_report().page() == named_report().page()


def test_a_bare_matrix_has_a_page_too():
    sims = np.eye(6) + np.random.default_rng(0).random((6, 6))
    report = of_matrix(sims, arrange(6, 6), ReportRequest("mine", "wordreel evaluate mine.npy", []))
    text = " ".join(read_page(report.page()).text)
    assert "6 captions" in text
    assert "Hubness" in text
    only = of_matrix(sims, arrange(6, 6), ReportRequest("mine", "", [], directions=("v2t",)))
    assert "Hubness" not in " ".join(read_page(only.page()).text)


def test_files_come_back(tmp_path):
    report = named_report()
    written = report.write(tmp_path / "new" / "v1.2")
    assert sorted(path.name for path in written) == [
        "v1.2.html",
        "v1.2.json",
        "v1.2.md",
        "v1.2.ranks.npz",
        "v1.2.tex",
    ]
    saved = report_files.read(tmp_path / "new" / "v1.2")
    again = report_files.read(tmp_path / "new" / "v1.2.json")
    assert saved.facts == again.facts == json.loads(json.dumps(report.facts))
    assert saved.queries.videos == report.queries.videos
    assert saved.queries.keys.tolist() == report.queries.keys.tolist()
    assert saved.queries.owner.tolist() == report.queries.owner.tolist()
    for run, ranks in zip(report.runs, saved.ranks, strict=True):
        np.testing.assert_array_equal(run.ranks, ranks)
    first = (tmp_path / "new" / "v1.2.ranks.npz").read_bytes()
    write_without_page(report, tmp_path / "again")
    assert (tmp_path / "again.ranks.npz").read_bytes() == first


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(EvaluationError, match="--out"):
        report_files.read(tmp_path / "nothing")
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(EvaluationError, match="not a result"):
        report_files.read(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="cannot be written"):
        write_without_page(named_report(), tmp_path / "file" / "x")


@pytest.mark.parametrize("harm", ["owner", "keys", "ranks0", "cut", "runs", "measured", "pickle"])
def test_files_that_do_not_fit_are_refused(tmp_path, harm):
    write_without_page(named_report(), tmp_path / "x")
    packed, facts = tmp_path / "x.ranks.npz", tmp_path / "x.json"
    with np.load(packed) as held:
        arrays = dict(held)
    told = json.loads(facts.read_text())
    if harm == "owner":
        arrays["owner"][0] = 99
    elif harm == "pickle":
        arrays["videos"] = np.array([{}] * 12, object)
    elif harm in arrays:
        arrays[harm] = arrays[harm][:-1]
    elif harm in told:
        del told[harm]
    np.savez(packed, **arrays)
    facts.write_text(json.dumps(told))
    if harm == "cut":
        packed.write_bytes(packed.read_bytes()[:500])
    with pytest.raises(EvaluationError, match="no result can be read"):
        report_files.read(tmp_path / "x")


def test_tables_hold_every_run():
    report = named_report()
    rows = rows_of(report.facts["runs"])
    assert len(rows) == 4
    assert [row[1] == "none" for row in rows[1:]] == [True, True, False]
    assert rows[1][4] == f"{report.runs[0].metrics.r1:.1f}"
    assert markdown(rows).count("\n") == 5
    tex = latex(rows, "made by\nhand")
    assert tex.startswith("% made by\n% hand\n\\begin{tabular}{llrrrrrrrrrr}")
    assert "\\&" in tex
    assert len({line.rstrip()[:12] for line in plain_text(rows).splitlines()}) >= 3


def test_labels_are_honest():
    bank = np.random.default_rng(0).random((50, 6))
    dis, dsl = make_method("dis"), make_method("dsl")
    plain = Normalisation(dis, bank, "train.npy")
    assert (plain.label, plain.transductive) == (
        "querybank(train.npy, 50 queries, method=dis, beta=20, k=1)",
        False,
    )
    seen = Normalisation(dis, bank, "test.npy", seen=True)
    assert (seen.label, seen.transductive) == (
        "transductive(the bank holds test queries, method=dis, beta=20, k=1)",
        True,
    )
    late = Normalisation(dsl)
    assert (late.label, late.transductive) == (
        "transductive(uses all test queries, method=dsl, beta=100)",
        True,
    )


def test_the_page_and_its_charts_say_what_is_transductive():
    rng = np.random.default_rng(3)
    sims = rng.normal(size=(36, 12)) / 4
    hows = [Normalisation(make_method(name, beta=5.0)) for name in ("test-is", "dsl")]
    report = of_matrix(sims, arrange(12, 36), ReportRequest("mine", "", ()), hows)
    text = report.page()
    assert charts_of(text).count("dsl, transductive: uses all test queries") >= 2  # curve, hubness
    assert "post-processing: transductive(uses all test queries, method=test-is, beta=5)" in text


def test_without_matplotlib_a_page_has_tables_of_groups_and_says_how_to_get_charts(monkeypatch):
    report = named_report()
    with_charts = report.page()
    assert with_charts.count("image/svg+xml") == 4
    assert "wordreel[plots]" not in with_charts
    monkeypatch.setattr("wordreel.lab.plots.find_spec", lambda name: None)
    without = report.page()
    assert "image/svg+xml" not in without
    assert without.count("<table>") == with_charts.count("<table>") + 2
    assert "pip install 'wordreel[plots]'" in without
