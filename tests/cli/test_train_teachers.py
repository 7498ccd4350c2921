"""TeachText from the command line: `wordreel train features … --teacher … --denoise …`."""

import json
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.fakes import Colour, FakeFence, Talk, write_media  # noqa: E402
from tests.lab.datasets.trees.published import dump, numbers, write_list, write_teachtext  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from wordreel.catalogue.store import LibraryStore  # noqa: E402
from wordreel.cli.app import app  # noqa: E402
from wordreel.errors import TrainingError  # noqa: E402
from wordreel.ingest.add import add  # noqa: E402
from wordreel.lab.models.checkpoint import read_facts  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.data import from_library  # noqa: E402
from wordreel.lab.training.open_data import CaptionedVideos, PublishedTree, Sources  # noqa: E402
from wordreel.lab.training.teachers import from_model  # noqa: E402

RECIPE = """
[model]
kind = "ce"
dim = 8
[model.text]
words = "vectors"
dim = 3
pool = "mean"
source = "word2vec:{folder}/words.txt"
{experts}
[run]
epochs = 2
batch = 3
"""
COLOUR = "[model.expert.colour]\ndim = 4"
BOTH = f"{COLOUR}\n[model.expert.talk]\ndim = 2"
CAPTIONS = {f"film{n}": ["a dog runs", "a cat", "cat runs"] for n in range(6)}


@pytest.fixture
def folder(tmp_path):
    """A library with captions, a recipe of a student, and one of a teacher that reads an expert more."""
    for seed in range(6):
        write_media(tmp_path / "media" / f"film{seed}.mp4", seconds=12.0 + 5 * seed, seed=seed)
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        add(store, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
    (tmp_path / "words.txt").write_text("dog 1 0 0\ncat 0 1 0\nruns 0 0 1\n")
    (tmp_path / "captions.json").write_text(json.dumps({"train": CAPTIONS, "val": CAPTIONS}))
    for name, experts in (("student", COLOUR), ("teacher", BOTH)):
        (tmp_path / f"{name}.toml").write_text(RECIPE.format(folder=tmp_path, experts=experts))
    return tmp_path


def train(folder, verb, recipe, out, *more):
    words = ["train", verb, str(recipe), *map(str, more), "--out", str(folder / out)]
    words += ["--device", "cpu"]
    done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done


def in_library(folder):
    captions = ("--captions", folder / "captions.json", "--split", "train", "--val-split", "val")
    return ("-L", folder / "library", *captions)


def weights(folder):
    return (folder / "last" / "model.safetensors").read_bytes()


def test_models_teach_a_student_on_a_library(folder):
    for seed in (0, 1):
        train(folder, "library", folder / "teacher.toml", f"t{seed}", *in_library(folder), "--seed", seed)
    teachers = ("--teacher", folder / "t0", "--teacher", folder / "t1" / "last")
    alone = train(folder, "library", folder / "student.toml", "alone", *in_library(folder))
    assert "6 videos, 18 captions" in alone.stderr
    train(folder, "library", folder / "student.toml", "taught", *in_library(folder), *teachers)
    taught = read_facts(folder / "taught" / "last")["training"]["recipe"]["teach"]
    assert taught["teachers"] == [str(folder / "t0"), str(folder / "t1" / "last")]
    assert weights(folder / "taught") != weights(folder / "alone")
    clean = train(
        folder,
        "library",
        folder / "student.toml",
        "clean",
        *in_library(folder),
        *teachers,
        "--denoise",
        "rank:1",
    )
    count = int(clean.stderr.split(" videos, ")[1].split()[0])
    assert 6 <= count < 18
    assert weights(folder / "clean") != weights(folder / "taught")


def test_a_teacher_reads_its_own_experts(folder):
    train(folder, "library", folder / "teacher.toml", "t", *in_library(folder))
    recipe = recipes.load(folder / "student.toml", [f'teach.teachers=["{folder / "t"}"]'])
    source = CaptionedVideos(folder / "library", str(folder / "captions.json"), "train")
    opened = Sources([source]).open(recipe)
    assert set(opened.train.rows) == {"colour"}
    videos, captions = torch.arange(6), torch.arange(18)
    similarities = opened.teachers.similarities(videos, captions)
    both, less = (
        from_model(folder / "t", from_library(folder / "library", CAPTIONS, experts))
        for experts in (["colour", "talk"], ["colour"])
    )
    assert torch.allclose(similarities[0], both.similarities(videos, captions))
    assert not torch.allclose(similarities[0], less.similarities(videos, captions), atol=1e-3)


@pytest.fixture
def tree(tmp_path):
    """A TeachText tree with three training videos, two sets of word features, a teacher and a mask."""
    ids = write_teachtext(tmp_path / "MSVD")["ids"]
    root = tmp_path / "MSVD" / "high-quality" / "structured-symlinks"
    write_list(root / "train_list.txt", ids)
    for name, dim in (("w2v", 4), ("gpt2", 5)):
        words = {f"vid{n}": [numbers(30 + n, 2, dim), numbers(50 + n, 3, dim)] for n in (1, 2, 3)}
        for part in ("train", "val", "test"):
            dump(root / "aggregated_text_feats" / f"{name}-caption-{part}.pkl", words)
    lessons = {
        item: {"vid_embds": {"audio": numbers(n, 5)}, "text_embds": {"audio": list(numbers(70 + n, 2, 5))}}
        for n, item in enumerate(ids)
    }
    dump(root / "teachers" / "train-full-ce-refined-text-w2v.pkl", lessons)
    dump(root / "denoise-less100.pkl", dict(zip(ids, map(np.array, ([1, 0], [1, 1], [0, 1])), strict=True)))
    return tmp_path / "MSVD"


def on_tree(tree, words, dim):
    changes = {"model.dim": 8, "model.text.dim": dim, "model.text.clusters": 2, "data.words": words,
               "model.expert.imagenet.resnext101_32x48d.0.dim": 8,
               "model.expert.r2p1d.r2p1d-ig65m-kinetics.0.dim": 6}  # fmt: skip
    sets = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    return ("--data", tree, *sets, "--epochs", 1, "--batch", 3)


PUBLISHED = "train-full-ce-refined-text-w2v"


def test_published_teachers_are_named(tree, tmp_path):
    both = ("--teacher", PUBLISHED, "--denoise", "denoise-less100")
    done = train(tmp_path, "features", "tt-ce-plus-msvd", "tt", *on_tree(tree, "w2v", 4), *both)
    assert "3 videos, 4 captions" in done.stderr
    every = ("--teacher", PUBLISHED, "--denoise", "none")
    done = train(tmp_path, "features", "tt-ce-plus-msvd", "all", *on_tree(tree, "w2v", 4), *every)
    assert "3 videos, 6 captions" in done.stderr
    with pytest.raises(TrainingError, match=f"no teacher 'nobody'.*{PUBLISHED}"):
        train(tmp_path, "features", "tt-ce-plus-msvd", "no", *on_tree(tree, "w2v", 4), "--teacher", "nobody")


def test_a_model_with_other_word_features_teaches_beside_a_published_teacher(tree, tmp_path):
    """TeachText: teachers differ in their text encoder."""
    train(tmp_path, "features", "ce-plus-msvd", "gpt2", *on_tree(tree, "gpt2", 5))
    own = str(tmp_path / "gpt2")
    both = ("--teacher", own, "--teacher", PUBLISHED, "--denoise", "none")
    train(tmp_path, "features", "tt-ce-plus-msvd", "student", *on_tree(tree, "w2v", 4), *both)
    sets = [str(word) for word in on_tree(tree, "w2v", 4)]
    changes = [after for word, after in pairwise(sets) if word == "--set"]
    recipe = recipes.load(
        "tt-ce-plus-msvd", [*changes, f"teach.teachers={json.dumps([own, PUBLISHED])}", "teach.denoise=''"]
    )
    teachers = PublishedTree(tree).open(recipe).teachers
    assert len(teachers.each) == 2
    assert teachers.similarities(torch.arange(3), torch.arange(6)).shape == (2, 6, 3)
