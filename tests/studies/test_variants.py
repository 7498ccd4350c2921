"""The study of changes to the default model's recipe."""

import json

import pytest
import variants

from wordreel.lab.training.recipe import load


@pytest.mark.parametrize("variant", variants.VARIANTS)
def test_every_variant_is_a_recipe(variant):
    changed = load("default", variants.VARIANTS[variant])
    assert (changed.to_json() == load("default").to_json()) == (variant == variants.AS_IS)


class FakeTraining:
    """Writes the log of a run whose recall tells the variant, the pack and the seed."""

    def __init__(self):
        self.runs = []

    def __call__(self, arguments):
        from pathlib import Path

        value = {key: arguments[arguments.index(key) + 1] for key in ("--packed", "--out", "--seed")}
        self.runs.append(value["--out"])
        if "loss.soft_targets=0.4" in arguments and value["--packed"].endswith("b.pack"):
            raise RuntimeError("something\nis missing from the pack")
        folder = Path(value["--out"])
        folder.mkdir()
        seed = int(value["--seed"])
        rows = [{"epoch": n, "t2v_r1": n + seed, "t2v_r5": 20.0, "t2v_r10": 30.0} for n in (1, 2)]
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_runs_become_a_table_and_are_not_trained_again(tmp_path, capsys):
    for name in ("a.pack", "b.pack"):
        (tmp_path / name).write_bytes(b"")
    given = ["--pack", f"all={tmp_path / 'a.pack'}", "--pack", f"no MSVD={tmp_path / 'b.pack'}"]
    given += ["--only", variants.AS_IS, "--only", "soft targets 0.4", "--seeds", "2", "--epochs", "2"]
    given += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    first, second = FakeTraining(), FakeTraining()
    variants.main(given, first)
    assert len(set(first.runs)) == 8
    rows = json.loads((tmp_path / "out" / "variants.json").read_text())["rows"]
    assert [row["variant"] for row in rows] == [variants.AS_IS, "soft targets 0.4"]
    whole = rows[0]["packs"]["all"]
    assert (whole["r1"], whole["sum"], whole["seeds"]) == (2.5, 52.5, 2)
    assert whole["deviation_of_sum"] == pytest.approx(0.5**0.5)
    assert rows[1]["packs"]["no MSVD"] == {"error": "is missing from the pack"}
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| the recipe as it is | 2.5/20.0/30.0 (52.5 ± 0.7, 2 seeds) |" in text
    assert "not trained: is missing from the pack" in text
    variants.main(given, second)
    assert len(second.runs) == 2  # those that failed
    (tmp_path / "names.pack").write_bytes(b"")
    more = ["--changed", f"names too=no MSVD:{tmp_path / 'names.pack'}"]
    variants.main([*given, *more], third := FakeTraining())
    assert sum("names-too-no-msvd" in run for run in third.runs) == 2
    row = json.loads((tmp_path / "out" / "variants.json").read_text())["rows"][-1]
    assert (row["variant"], row["changes"], list(row["packs"])) == ("names too", [], ["no MSVD"])
    assert "| names too | – | 2.5/20.0/30.0" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(SystemExit, match="no pack is called 'MSVD'"):
        variants.main([*given, "--changed", "x=MSVD:a.pack"], second)
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"c\.pack"):
        variants.main(["--pack", "x=c.pack"], second)
