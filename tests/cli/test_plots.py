"""The `--plot` flags."""

from xml.etree import ElementTree

from tests.cli.invoke import shell, shell_json


def drawn(path):
    root = ElementTree.fromstring(path.read_text())  # noqa: S314 - our own
    return " ".join(child.text or "" for child in root.iter())


def test_plots(sims):
    facts = shell_json("hubness", sims / "a.npy", "--plot", sims / "one.svg")
    assert f"skewness {facts['skewness']:.2f}" in drawn(sims / "one.svg")
    said = shell("hubness", sims / "a.npy", "--plot", sims / "one.svg").stderr
    assert said == f"chart written to {sims / 'one.svg'}\n"
    facts = shell_json(
        "qbnorm", "--bank", sims / "bank.npy", "--test", sims / "a.npy", "--plot", sims / "two.svg"
    )
    text = drawn(sims / "two.svg")
    for side in ("before", "after"):
        assert f"{side}: skewness {facts['hubness'][side]['skewness']:.2f}" in text
    shell("hubness", sims / "a.npy", "--plot", sims / "one.png", code=2)
