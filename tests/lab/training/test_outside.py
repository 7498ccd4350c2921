"""Training from libraries and trees, by the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.fakes import Colour, FakeFence, Talk, write_media  # noqa: E402
from tests.lab.datasets.trees.published import write_audiocaps, write_ce, write_teachtext  # noqa: E402
from tests.lab.training.toys import toy_recipe  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from wordreel.catalogue.store import LibraryStore  # noqa: E402
from wordreel.cli.app import app  # noqa: E402
from wordreel.errors import TrainingError  # noqa: E402
from wordreel.ingest.add import add  # noqa: E402
from wordreel.lab.datasets.types import Caption, Item, Split  # noqa: E402
from wordreel.lab.models.config import TextConfig  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.data import from_library, from_tree  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.training_data import prepare  # noqa: E402
from wordreel.types import Absent, Track  # noqa: E402


class Tree:
    """A published tree in memory."""

    kind, dataset, root = "ce", "TOY", "toy"
    experts = ("scene", "sound")

    def split(self, name):
        items = [Item(f"v{n}", (Caption(f"dog {n}"), Caption("runs"))) for n in range(6)]
        return Split("toy", name, (*items, Item("mute", (Caption("x"),)), Item("untold")))

    def read(self, expert, item):
        if item == "mute" or (expert == "sound" and item == "v2"):
            return Absent("nothing")
        rng = np.random.default_rng([ord(expert[1]), int(item[1:])])
        dim = 6 if expert == "scene" else 5
        return Track(rng.normal(size=(2, dim)).astype(np.float32), np.array([[0.0, 1.0], [-1.0, -1.0]]))

    def for_split(self, split):
        return self

    def caption_index(self, split):
        return {}

    word_feature_names = ("w2v",)

    def word_features(self, name, item):
        if item == "untold":
            return []
        rng = np.random.default_rng(len(item))
        return [rng.normal(size=(3, 7)).astype(np.float32) for _ in range(2 if item.startswith("v") else 1)]


def test_pairs_from_a_tree():
    pairs = from_tree(Tree(), "train", ["scene", "sound", "face"], words="w2v")
    assert pairs.ids == tuple(f"v{n}" for n in range(6))
    assert pairs.missing == 2
    assert pairs.rows["sound"].counts.tolist() == [2, 2, 0, 2, 2, 2]
    assert np.isnan(pairs.rows["scene"].times[1])
    assert pairs.rows["scene"].times[0] == 0.5
    whole = from_tree(Tree(), "train", ["scene"], words="w2v", rule="paragraph")
    assert whole.counts.tolist() == [1] * 6
    assert whole.words[0][0].shape == (6, 7)
    text = from_tree(Tree(), "train", ["scene"], rule="one")
    assert text.words is None
    assert text.texts[3] == "dog 3"
    with pytest.raises(TrainingError, match="none of the experts face"):
        from_tree(Tree(), "train", ["face"])


def test_a_library_without_captions_says_so(tmp_path):
    with (
        LibraryStore.create_or_open(tmp_path / "lib") as store,
        pytest.raises(TrainingError, match="wordreel list"),
    ):
        from_library(store, {"a": ["a dog"]})


WORDS = "dog 1 0 0\ncat 0 1 0\nruns 0 0 1\nsleeps 1 1 0\n"


def test_training_on_text_with_word_vectors_of_ones_own(tmp_path):
    (tmp_path / "words.txt").write_text(WORDS)
    recipe = toy_recipe("ce", epochs=2, batch=6)
    text = TextConfig("vectors", 3, "mean", source="word2vec:words.txt")
    recipe = replace(recipe, model=replace(recipe.model, text=text))
    held = from_tree(Tree(), "train", ["scene", "sound"])
    ready = prepare(recipe, held, held, folder=tmp_path, cache=tmp_path / "cache")
    again = prepare(recipe, held, held, folder=tmp_path, cache=tmp_path / "cache")
    assert np.array_equal(ready.train_words.values, again.train_words.values)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    result = train(recipe, ready, tmp_path / "run", device="cpu")
    assert np.isfinite(result.score)


@pytest.fixture
def store(tmp_path):
    for seed in range(6):
        write_media(tmp_path / "media" / f"film{seed}.mp4", seconds=12.0 + 5 * seed, seed=seed)
    write_media(tmp_path / "media" / "still.png", kind="image", seed=40)
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        add(made, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
        yield made


def test_pairs_from_a_library(store):
    told = {
        "film0": ["a dog", "a cat"],
        "film3.mp4": ["it runs"],
        "still": ["a picture"],
        "gone": ["nothing"],
    }
    pairs = from_library(store, told)
    assert [len(captions) for captions in pairs.captions] == [2, 1, 1]
    assert pairs.missing == 1
    assert set(pairs.rows) == {"colour", "talk"}
    content = {file.path.rsplit("/", 1)[-1]: file.content for file in store.files()}
    assert pairs.ids == (content["film0.mp4"], content["film3.mp4"], content["still.png"])
    track = store.track(content["film3.mp4"], "colour")
    assert np.array_equal(pairs.rows["colour"].item(1), track.values)
    assert pairs.rows["colour"].counts[2] == 1
    store.catalogue.run(
        "UPDATE tracks SET fingerprint = 'quick-' || fingerprint WHERE content = ?", content["film3.mp4"]
    )
    assert from_library(store, told).ids == (content["film0.mp4"], content["still.png"])  # not by key frames
    only = from_library(store, told, ["colour", "smell"])
    assert set(only.rows) == {"colour"}
    with pytest.raises(TrainingError, match="none of smell"):
        from_library(store, told, ["smell"])


OWN = """
[model]
kind = "ce"
dim = 8
[model.text]
words = "vectors"
dim = 3
pool = "mean"
source = "word2vec:{folder}/words.txt"
[model.expert.colour]
dim = 4
[run]
epochs = 2
batch = 4
"""


def test_a_library_is_trained_on_from_the_command_line(store, tmp_path):
    (tmp_path / "words.txt").write_text(WORDS)
    (tmp_path / "own.toml").write_text(OWN.format(folder=tmp_path))
    told = {
        "train": {f"film{n}": ["a dog runs", "a cat"] for n in range(4)},
        "val": {"film4": ["a dog"], "film5": ["a cat"]},
    }
    (tmp_path / "captions.json").write_text(json.dumps(told))
    library, captions = str(store.path), f"{tmp_path}/captions.json"
    asked = ["train", "library", f"{tmp_path}/own.toml", "-L", library, "-L", library, "--captions", captions,
             "--split", "train", "--share", "1", "--share", "2", "--val-split", "val",
             "--out", f"{tmp_path}/run", "--device", "cpu",
             "--seed", "0", "--seed", "1", "--json"]  # fmt: skip
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["figures"]["t2v"]["queries"] == 2
    from wordreel.lab.models.checkpoint import TrainedModel

    model = TrainedModel(tmp_path / "run" / "seed-1" / "best")
    assert model.experts == ("colour",)
    assert len(model.encode(["a dog"])) == 1


def test_a_published_tree_is_trained_on_from_the_command_line(tmp_path):
    write_ce(tmp_path / "MSRVTT")
    asked = ["train", "features", "ce-msrvtt-1k-a", "--data", f"{tmp_path}/MSRVTT",
             "--out", f"{tmp_path}/run",
             "--epochs", "2", "--batch", "3", "--device", "cpu",
             "--set", "model.dim=8", "--set", "model.text.dim=4"]  # fmt: skip
    dims = {"imagenet.resnext101_32x48d.0": 8, "imagenet.senet154.0": 8, "r2p1d.r2p1d-ig65m.0": 6,
            "i3d.i3d.0": 6, "scene.densenet161.0": 7, "face": 5, "ocr": 4, "audio": 3,
            "speech": 4}  # fmt: skip
    for name, dim in dims.items():
        asked += ["--set", f"model.expert.{name}.dim={dim}"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "epoch 2" in done.output
    assert (tmp_path / "run" / "best" / "model.safetensors").is_file()


def test_ar_ce_is_trained_on_its_own_tree(tmp_path):
    pytest.importorskip("h5py")
    write_audiocaps(tmp_path / "AudioCaps")
    asked = ["train", "features", "ce-audiocaps", "--data", f"{tmp_path}/AudioCaps",
             "--out", f"{tmp_path}/run",
             "--epochs", "1", "--batch", "3", "--device", "cpu", "--set", "model.dim=8",
             "--set", "model.text.dim=4", "--set", "model.expert.audio.dim=3",
             "--set", "model.expert.vggsound.dim=5"]  # fmt: skip
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "epoch 1" in done.output


def test_published_teachers_and_masks(tmp_path):
    from wordreel.lab.datasets.trees import open_tree
    from wordreel.lab.training.open_data import add_teachers
    from wordreel.lab.training.settings import TeachSettings

    said = write_teachtext(tmp_path / "MSVD")
    tree = open_tree(tmp_path / "MSVD")
    held = from_tree(tree, "train", ["imagenet.resnext101_32x48d.0"], words="w2v")
    name = "train-full-ce-refined-text-w2v"
    recipe = replace(toy_recipe("ce"), teach=TeachSettings((name,), denoise="denoise-less100"))
    opened = add_teachers(recipe, held, tree=tree)
    train_pairs, teachers = opened.train, opened.teachers
    assert train_pairs.counts.tolist() == [1]  # the mask drops the second caption
    lesson = said["lessons"][said["ids"][0]]
    slow = sum(float(lesson["text_embds"][e][0] @ lesson["vid_embds"][e]) for e in lesson["vid_embds"])
    zero = torch.tensor([0])
    assert float(teachers.similarities(zero, zero)[0]) == pytest.approx(slow, rel=1e-5)


def test_the_command_line_lists_recipes_and_refuses_nothing_to_train_on(tmp_path):
    rows = json.loads(CliRunner().invoke(app, ["models", "--json"]).output)
    listed = {row["name"]: row["parameters"] for row in rows if row["kind"] == "recipe"}
    assert sorted(listed) == recipes.names()
    assert listed["mmt-msrvtt-1k-a"] == 133_357_063
    refused = CliRunner().invoke(app, ["train", "features", "ce-msvd", "--out", str(tmp_path)])
    assert refused.exit_code == 2
    assert "--data" in refused.output
