"""The training of the text tower on a toy world, its losses against slow ones, and the files that ship."""

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import onnxruntime  # noqa: E402
import tower_export  # noqa: E402
import tower_material  # noqa: E402
import tower_training  # noqa: E402

from wordreel.lab.models.config import TransformerConfig  # noqa: E402
from wordreel.lab.models.text.bert import Bert  # noqa: E402
from wordreel.models.joint.adapter import read_adapter  # noqa: E402
from wordreel.types import Float32  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "red", "green", "blue", "dog", "car", "rotes", "auto"]
SIZE = TransformerConfig(vocabulary=300, hidden=128, layers=2, heads=4, inner=256, positions=64)


class Words:
    """A tokenizer of whole words."""

    def encode_batch(self, texts):
        return [SimpleNamespace(ids=[2, *(WORDS.index(w) for w in t.split()), 3]) for t in texts]

    def enable_truncation(self, most):
        self.most = most

    def no_padding(self):
        pass

    def save(self, path, pretty):
        with open(path, "w") as file:  # noqa: PTH123
            file.write("{}")


@pytest.fixture
def tower():
    torch.manual_seed(0)
    return tower_training.Tower(Bert(SIZE))


@pytest.fixture
def world():
    """Six things, each seen in a direction of its own, with noise."""
    rng = np.random.default_rng(0)
    items = []
    for thing in range(6):
        caption = f"a {WORDS[5 + thing % 3]} {WORDS[8 + thing // 3]}"
        rows = rng.normal(0, 0.02, (8, 512)).astype(np.float32)
        rows[:, thing] += 1
        items.append(tower_material.Item(rows, (caption, caption.removeprefix("a "))))
    return items


def test_captions_find_what_they_describe_after_training(tower, world, tmp_path):
    before = tower_training.recall(tower, Words(), world)[0]
    lines = []
    settings = tower_training.Settings(steps=60, batch=12, lr=1e-3)
    material = tower_material.Material(tuple(world), {})
    trained = tower_training.train(
        material, tower.network, Words(), settings, tmp_path / "tower.pt", lines.append
    )
    assert tower_training.recall(trained, Words(), world)[0] > max(before, 95)
    assert len(lines) == 60
    held = torch.load(tmp_path / "tower.pt", weights_only=True)
    assert held["steps"] == 60
    assert held["settings"]["batch"] == 12


def test_every_caption_comes_once_before_any_comes_again(world):
    tokens = [tower_training.tokenize(Words(), item.captions) for item in world]
    batches = tower_training.Batches(world, tokens, 4, np.random.default_rng(0))
    seen = [(int(item), tuple(ids)) for _ in range(3) for item, ids in zip(*next(batches)[:2], strict=True)]
    assert len(seen) == len(set(seen)) == 12


def slow_caption_loss(scale, text, seen, items):
    total, count = 0.0, len(items)
    for first, second in ((text, seen), (seen, text)):
        for i in range(count):
            scores = [scale * float(first[i] @ second[j]) for j in range(count)]
            norm = np.log(np.sum(np.exp(scores)))
            right = [j for j in range(count) if items[j] == items[i]]
            total += sum(norm - scores[j] for j in right) / len(right)
    return total / (2 * count)


def test_the_loss_of_captions_equals_the_slow_one(tower):
    text, seen = (torch.nn.functional.normalize(torch.randn(5, 512), dim=1) for _ in range(2))
    items = torch.tensor([0, 1, 0, 2, 1])
    found = tower_training.caption_loss(tower, text, seen, items).item()
    assert found == pytest.approx(slow_caption_loss(20.0, text, seen, items), rel=1e-4)


def test_a_translation_is_taught_its_original_and_no_other():
    ours = torch.nn.functional.normalize(torch.randn(4, 512), dim=1)
    right = tower_training.translation_loss(ours, ours)
    wrong = tower_training.translation_loss(ours[[1, 2, 3, 0]], ours)
    assert right.item() < 0.01 < wrong.item()


def test_equal_originals_are_no_rivals_of_each_other():
    ours = torch.nn.functional.normalize(torch.randn(1, 512), dim=1).expand(3, 512)
    assert tower_training.translation_loss(ours, ours).item() == pytest.approx(0, abs=1e-3)


def test_the_files_that_ship_say_what_the_trained_tower_says(tower, tmp_path):
    tower_export.export(tower, Words(), {"name": "joint"}, tmp_path)
    session = onnxruntime.InferenceSession(str(tmp_path / "text_tower.onnx"))
    tokens = [[2, 4, 5, 8, 3], [2, 9, 3]]
    ids, mask = tower_training.padded(tokens)
    found: Float32 = session.run(
        ["embedding"], {"input_ids": ids.numpy(), "attention_mask": mask.long().numpy()}
    )[0]
    with torch.no_grad():
        wanted = tower.text(ids, mask).numpy()
    assert (found * wanted).sum(axis=1) == pytest.approx(1, abs=5e-3)
    adapter = read_adapter(tmp_path / "joint.safetensors", tmp_path / "stamps")
    rows = np.random.default_rng(1).normal(size=(3, 512)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    with torch.no_grad():
        assert adapter(rows) == pytest.approx(tower.seen(torch.from_numpy(unit)).numpy(), abs=1e-3)


def test_pictures_kept_for_measuring_are_never_trained_on(tmp_path):
    data, packs = tmp_path / "data", tmp_path / "packs"
    for name in ("flickr8k", "coco", "msvd", "msrvtt"):
        (data / name).mkdir(parents=True)
    packs.mkdir()
    five = [f"caption {number}" for number in range(5)]
    names = [f"{number:012d}" for number in range(1010)]
    write(data / "flickr8k/captions.json", {"train": {"a.jpg": five}, "dev": {"b.jpg": five}})
    write(data / "coco/captions.json", {"train": {f"{name}.webp": five for name in names}})
    write(data / "coco/captions_more.json.gz", {"more": five})
    write(data / "coco/held_out_ids.json.gz", [names[0], "more"])
    write(data / "msvd/captions.json", {"v": five, "w": five})
    write(data / "msvd/splits.json", {"official": {"train": ["v"], "val": [], "test": ["w"]}})
    write(data / "msrvtt/captions.json", {"video1": five})
    for pack, ids in (
        ("flickr8k", ["a", "b"]),
        ("coco", names),
        ("coco-1", ["more"]),
        ("msvd", ["v", "v", "w"]),
    ):
        np.savez(packs / f"{pack}.npz", ids=np.array(ids), rows=np.ones((len(ids), 512), np.float16))
    found = tower_material.load(data, packs)
    assert len(found.training) == 1 + 9 + 1  # Flickr8k, COCO less a thousand and the one never used, MSVD
    assert {name: len(items) for name, items in found.measured.items()} == {
        "flickr8k-dev": 1,
        "coco-held-out": 1000,
        "msvd-test": 1,
        "msrvtt-240": 0,
    }


def write(path, value):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(value, file)
