"""The training of the text tower on a toy world, its losses against slow ones, and the files that ship."""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import onnxruntime  # noqa: E402
import tower_export  # noqa: E402
import tower_material  # noqa: E402
import tower_training  # noqa: E402
import tower_word_training  # noqa: E402
import tower_words  # noqa: E402

from wordreel.lab.models.config import TransformerConfig  # noqa: E402
from wordreel.lab.models.text.bert import Bert  # noqa: E402
from wordreel.models.joint.adapter import read_adapter  # noqa: E402
from wordreel.types import Float32  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "red", "green", "blue", "dog", "car", "rotes", "auto"]
SIZE = TransformerConfig(vocabulary=300, hidden=128, layers=2, heads=4, inner=256, positions=64)


TOKENIZER = json.dumps(
    {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": word,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, word in enumerate(WORDS[:4])
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [],
            "special_tokens": {
                name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]}
                for name in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: number for number, word in enumerate(WORDS)},
        },
    }
)


class Words:
    """A tokenizer of whole words."""

    def encode_batch(self, texts):
        return [SimpleNamespace(ids=[2, *(WORDS.index(w) for w in t.split()), 3]) for t in texts]

    def enable_truncation(self, most):
        self.most = most

    def no_padding(self):
        pass

    def save(self, path, pretty):
        Path(path).write_text(TOKENIZER)


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


def test_captions_find_what_they_describe_after_training(tower, world):
    before = tower_training.recall(tower, Words(), world)[0]
    lines = []
    settings = tower_training.Settings(steps=60, batch=12, lr=1e-3)
    material = tower_material.Material(tuple(world), {})
    trained, steps = tower_training.train(material, tower.network, Words(), settings, lines.append)
    assert tower_training.recall(trained, Words(), world)[0] > max(before, 95)
    assert len(lines) == steps == 60


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
    right = tower_word_training.translation_loss(ours, ours)
    wrong = tower_word_training.translation_loss(ours[[1, 2, 3, 0]], ours)
    assert right.item() < 0.01 < wrong.item()


def test_equal_originals_are_no_rivals_of_each_other():
    ours = torch.nn.functional.normalize(torch.randn(1, 512), dim=1).expand(3, 512)
    assert tower_word_training.translation_loss(ours, ours).item() == pytest.approx(0, abs=1e-3)


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


GERMAN = {"a": "ein", "red": "rote", "green": "grune", "blue": "blaue", "dog": "hund", "car": "wagen"}
PAIRS = [
    (f"a {colour} {thing}", f"{GERMAN['a']} {GERMAN[colour]} {GERMAN[thing]}")
    for colour in ("red", "green", "blue")
    for thing in ("dog", "car")
]


def test_what_ships_can_be_read_back_and_trained_further(tower, tmp_path):
    tower_export.export(tower, Words(), {"name": "joint"}, tmp_path)
    state, tokenizer, card = tower_words.read_shipped(tmp_path)
    assert tokenizer == TOKENIZER
    assert card == {"name": "joint"}
    torch.manual_seed(1)
    fresh = tower_training.Tower(Bert(SIZE))
    fresh.load_state_dict(tower_words.complete(state, fresh.state_dict()))
    ids, mask = tower_training.padded([[2, 4, 5, 8, 3], [2, 9, 3]])
    with torch.no_grad():
        likeness = (tower.eval().text(ids, mask) * fresh.eval().text(ids, mask)).sum(1)
    assert likeness.numpy() == pytest.approx(1, abs=5e-3)
    assert fresh.adapter.weight.detach().numpy() == pytest.approx(
        tower.adapter.weight.detach().numpy(), abs=1e-3
    )


def test_a_new_word_starts_as_what_it_stands_for():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(WORDS), 8)).astype(np.float32)
    pairs = {"de": PAIRS * 400}
    english = [sentence for sentence, _ in PAIRS]
    start, extended, rows = tower_words.add_words(table, TOKENIZER, pairs, english, {"de": 9})
    first = rows[0]
    vocabulary = json.loads(extended)["model"]["vocab"]
    assert sorted(vocabulary, key=vocabulary.get)[:first] == WORDS
    assert rows == list(range(first, len(vocabulary)))
    assert set(vocabulary) - set(WORDS) == set(GERMAN.values())
    assert start[:first] == pytest.approx(table)
    for colour in ("red", "green", "blue"):  # a colour and a thing always come together: their sum is known
        for thing in ("dog", "car"):
            theirs = sum(start[vocabulary[GERMAN[word]]] for word in ("a", colour, thing))
            ours = sum(table[WORDS.index(word)] for word in ("a", colour, thing))
            assert theirs == pytest.approx(ours, abs=0.02)


def test_the_vectors_of_words_equal_slow_ridge_regressions():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(WORDS), 5)).astype(np.float32)
    pairs = [("a red dog", "rotes dog"), ("red car", "rotes auto"), ("a car", "auto"), ("a dog", "a dog dog")]
    found = tower_words._vectors(table, TOKENIZER, pairs)
    x = np.zeros((len(pairs), len(WORDS)))
    y = np.zeros((len(pairs), 5))
    for row, (english, other) in enumerate(pairs):
        for word in other.split():
            x[row, WORDS.index(word)] += 1
        y[row] = sum(table[WORDS.index(word)] for word in english.split())
    wanted = np.linalg.lstsq(
        np.vstack([x, np.sqrt(tower_words.RIDGE) * np.eye(len(WORDS))]),
        np.vstack([y, np.zeros((len(WORDS), 5))]),
        rcond=None,
    )[0]
    assert found == pytest.approx(wanted, abs=1e-4)


def test_words_of_english_text_stay_english_and_rare_tokens_make_room(monkeypatch):
    table = np.eye(len(WORDS), dtype=np.float32)
    pairs = {"de": [("a dog", "hund skate"), ("a car", "wagen skate")]}
    monkeypatch.setattr(tower_words, "TOKENS", len(WORDS))
    _, extended, _ = tower_words.add_words(table, TOKENIZER, pairs, ["skate a dog"] * 3, {"de": 5})
    vocabulary = json.loads(extended)["model"]["vocab"]
    assert "skate" not in vocabulary
    assert {"hund", "wagen", "a", "dog", "[CLS]"} <= set(vocabulary)
    assert len(vocabulary) == len(WORDS)
    assert "auto" not in vocabulary  # the last of the words that no English sentence here has


def test_tokens_of_another_language_are_taken_over():
    table = np.eye(len(WORDS), dtype=np.float32)
    english = ["a red dog", "a green car"] * 40
    pairs = {"de": [("a dog", "auto hund"), ("a red dog", "auto red hund")] * 200}  # "auto" for "a"
    start, extended, rows = tower_words.add_words(table, TOKENIZER, pairs, english, {"de": 1})
    vocabulary = json.loads(extended)["model"]["vocab"]
    assert rows == sorted([vocabulary["auto"], vocabulary["hund"]])
    assert start[vocabulary["red"]] == pytest.approx(table[WORDS.index("red")])
    together = start[vocabulary["auto"]] + start[vocabulary["hund"]]
    assert together == pytest.approx(table[WORDS.index("a")] + table[WORDS.index("dog")], abs=0.05)


def test_only_new_words_learn_and_they_learn_their_originals(tower):
    _, extended, rows = tower_words.add_words(
        np.zeros((len(WORDS), SIZE.hidden), np.float32), TOKENIZER, {"de": PAIRS}, [], {"de": 9}
    )
    before = {name: tensor.clone() for name, tensor in tower.state_dict().items()}
    vocabulary = json.loads(extended)["model"]["vocab"]

    class Both:
        def encode_batch(self, texts):
            return [SimpleNamespace(ids=[2, *(vocabulary[w] for w in t.split()), 3]) for t in texts]

    losses = []
    settings = tower_training.Settings(steps=80, batch=12, lr=3e-2)
    steps = tower_word_training.train_words(
        tower, rows, Both(), {"de": PAIRS}, settings, lambda line: losses.append(float(line.split()[-1]))
    )
    assert steps == 80
    assert losses[-1] < losses[0] / 2
    after = tower.state_dict()
    assert not torch.equal(after[tower_words.TABLE][rows], before[tower_words.TABLE][rows])
    after[tower_words.TABLE][rows] = before[tower_words.TABLE][rows]
    assert all(torch.equal(tensor, before[name]) for name, tensor in after.items())


def test_words_of_a_language_are_listed_once(tmp_path):
    tower_words.write_word_lists({"de": [("a dog", "Ein Hund"), ("the dog", "ein Hund bellt")]}, tmp_path)
    assert gzip.decompress((tmp_path / "de.txt.gz").read_bytes()).decode().split() == ["ein", "hund"]


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
