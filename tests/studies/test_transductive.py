"""The study of transductive normalisations on made-up logits of two models."""

import json

import numpy as np
import pytest
import transductive
from common import T2V, V2T

from wordreel.errors import EvaluationError
from wordreel.retrieval.caption_ranks import arrange, text_to_video, video_to_text


def logits(seed, captions=60, videos=20, scale=40.0, bank=150, noise=0.3):
    """Hubs, and a bank that has the same ones."""
    rng = np.random.default_rng(seed)
    hubs = np.linspace(0, 0.5, videos)
    right = np.repeat(np.eye(videos), captions // videos, axis=0)
    test = rng.normal(size=(captions, videos)) * noise + 0.5 * right + hubs
    rows = rng.normal(size=(bank, videos)) * noise + hubs
    back = rng.normal(size=(bank // 2, captions)) * noise
    arrays = {"": test, "bank_": rows, "video_bank_": back}
    return {name: (scale * array).astype(np.float32) for name, array in arrays.items()}


def save(folder, model, seed, **changes):
    owner = np.repeat(np.arange(20), 3)
    arrays = {"test_owner": owner, "val_owner": owner, "logit_scale": 40.0}
    for split, offset in (("test", 0), ("val", 50)):
        arrays |= {name + split: array for name, array in logits(seed + offset).items()}
    path = folder / f"seed-{seed}" / f"{model}.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logits")
    files = [save(folder, "ts2net", 0), save(folder, "ts2net", 1)]
    files.append(save(folder, "clip4clip", 0, video_bank_test=None, val=None))
    transductive.main([*map(str, files), "--out", str(folder / "out")])
    facts = {
        name: json.loads((folder / "out" / f"{name}.json").read_text()) for name in ("ts2net", "clip4clip")
    }
    return files, facts, (folder / "out" / "README.md").read_text()


def test_the_table_has_every_row_in_both_directions(results):
    _, facts, text = results
    for direction in (T2V, V2T):
        rows = [run["row"] for run in facts["ts2net"]["runs"] if run["direction"] == direction]
        assert rows == ["plain", *transductive.ROWS.values()]
    assert text.index("## Text → video") < text.index("## Video → text (clip)")
    assert text.count("**yes, uses all test queries**") == 2 * (4 + 2)
    assert text.count("| ts2net (2 seeds) |") == 14
    for run in facts["ts2net"]["runs"]:
        assert run["transductive"] == (run["row"].startswith(("+ inverted", "+ DSL")))
        assert run["deviation"]["R1"] >= 0


def test_figures_are_those_of_the_printed_formulas(results):
    files, facts, _ = results
    runs = {(run["direction"], run["row"]): run for run in facts["ts2net"]["runs"]}
    captions = arrange(20, 60)
    wanted = []
    for path in files[:2]:
        with np.load(path) as held:
            test = held["test"].astype(np.float64)
        columns = np.exp(test - test.max(axis=0))
        columns /= columns.sum(axis=0)
        back = np.exp(test.T - test.T.max(axis=0))
        back = (test.T * back / back.sum(axis=0)).T
        wanted.append(
            [
                text_to_video(test, captions).r1,
                text_to_video(columns, captions).r1,
                text_to_video(test * columns, captions).r1,
                video_to_text(back, captions, protocol="clip").r1,
            ]
        )
    found = [runs[T2V, "plain"], runs[T2V, "+ inverted softmax"], runs[T2V, "+ DSL"], runs[V2T, "+ DSL"]]
    assert [run["figures"]["R1"] for run in found] == pytest.approx(np.mean(wanted, axis=0))
    assert runs[T2V, "+ DSL"]["postprocessing"] == "transductive(uses all test queries, method=dsl, beta=1)"
    assert runs[T2V, "+ DIS, training bank"]["figures"]["R1"] > runs[T2V, "plain"]["figures"]["R1"]


def test_beta_is_chosen_on_the_validation_videos(results):
    files, facts, _ = results
    seeds = [transductive.read(path) for path in files[:2]]
    chosen = transductive.validated_beta("dis", seeds, T2V)
    label = next(r["postprocessing"] for r in facts["ts2net"]["runs"] if r["row"] == "+ DIS, training bank")
    assert label == f"querybank(training captions, 150 queries, method=dis, beta={chosen:g}, k=1)"
    recalls = {}
    for beta in transductive.GRID:
        method = transductive.make_method("dis", beta=beta / 40)
        recalls[beta / 40] = np.mean(
            [
                transductive.measured(method, s.val.banks[T2V], s.val.similarities, s.val.captions).recall.r1
                for s in seeds
            ]
        )
    assert recalls[chosen] == max(recalls.values())


def test_what_is_missing_is_left_out_or_refused(results, tmp_path):
    _, facts, _ = results
    rows = [(run["direction"], run["row"], run["beta_chosen_on"]) for run in facts["clip4clip"]["runs"]]
    assert ("t2v", "+ DIS, training bank", "bank, without labels") in rows
    assert [row for way, row, _ in rows if way == "v2t"] == ["plain", "+ inverted softmax", "+ DSL"]
    np.savez(tmp_path / "CLIP.npz", test=np.eye(3), test_owner=np.arange(3))
    with pytest.raises(EvaluationError, match="no 'bank_test'"):
        transductive.read(tmp_path / "CLIP.npz")
    np.savez(tmp_path / "CLIP.npz", test=np.eye(3), test_owner=np.arange(3), bank_test=np.eye(3))
    one = transductive.read(tmp_path / "CLIP.npz")
    assert (one.model, one.seed, one.scale, transductive.published_beta([one])) == ("CLIP", 0, 1.0, 100.0)
