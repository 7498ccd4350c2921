import base64
import gzip
import itertools
import json
import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordreel.backbones import tokenizer_files
from wordreel.backbones.config import TokenizerConfig
from wordreel.backbones.text_cleaning import clean, fix_text
from wordreel.backbones.tokenizer import CLIP_VOCABULARY, MAX_CHARACTERS, ClipTokenizer, clip_tokenizer
from wordreel.errors import WeightsError
from wordreel.runtime.store import WeightStore

MERGES = [
    "t h",
    "a n",
    "th e</w>",
    "d o",
    "do g</w>",
    "r u",
    "ru n",
    "run n",
    "i n",
    "in g</w>",
    "s </w>",
    "c a",
]
MERGES = [merge for merge in MERGES if "</w>" not in merge.split()]
LETTERS = tokenizer_files._byte_letters()
OPENAI = TokenizerConfig(length=12)


def naive_ids(text, merges=MERGES):
    """Byte-pair encoding as Sennrich et al. describe it: merge the pair of lowest rank until none is left."""
    tokens = [
        *LETTERS,
        *(letter + "</w>" for letter in LETTERS),
        *(merge.replace(" ", "") for merge in merges),
    ]
    ranks = {tuple(merge.split()): rank for rank, merge in enumerate(merges)}
    found = []
    for word in re.findall(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|[^\s\w]+|_+", clean(text, OPENAI)):
        parts = [byte_letter(byte) for byte in word.encode()]
        parts[-1] += "</w>"
        while True:
            pairs = [pair for pair in itertools.pairwise(parts) if pair in ranks]
            if not pairs:
                break
            first, second = min(pairs, key=ranks.__getitem__)
            at = 0
            while at < len(parts) - 1:
                if (parts[at], parts[at + 1]) == (first, second):
                    parts[at : at + 2] = [first + second]
                at += 1
        found += [tokens.index(part) for part in parts]
    return found


def byte_letter(byte):
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return chr(byte) if byte in printed else chr(256 + sorted(set(range(256)) - set(printed)).index(byte))


def merges_file(path, merges=MERGES):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(["#version: 0.2", *merges]))
    return path


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizer_files, "OPENAI_MERGES", len(MERGES))
    return ClipTokenizer(tokenizer_files.from_openai_merges(merges_file(tmp_path / "bpe.gz")), OPENAI)


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("thedogrunicas'.!1é日 ")))
def test_ids_are_those_of_the_naive_encoding(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("bpe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer_files, "OPENAI_MERGES", len(MERGES))
        tokenizer = ClipTokenizer(tokenizer_files.from_openai_merges(merges_file(folder / "bpe.gz")), OPENAI)
    ids, mask = tokenizer.encode([text], length=400)
    assert ids[0][mask[0]].tolist() == [512 + len(MERGES), *naive_ids(text), 513 + len(MERGES)]


def test_long_texts_are_cut_before_the_end_mark(tiny):
    ids, mask = tiny.encode(["dog " * 40, "dog", ""])
    start, end = tiny.vocabulary - 2, tiny.vocabulary - 1
    assert ids.shape == mask.shape == (3, 12)
    assert (ids[:, 0] == start).all()
    assert ids[0, -1] == end
    assert mask.sum(axis=1).tolist() == [12, 2 + len(naive_ids("dog")), 2]
    assert (ids[~mask] == 0).all()
    assert tiny.encode([])[0].shape == (0, 12)


def test_users_cannot_type_marks(tiny):
    ids, _ = tiny.encode(["<|endoftext|> dog"], length=60)
    assert (ids[0] == tiny.vocabulary - 1).sum() == 1


def test_what_cannot_be_encoded_is_read_all_the_same(tiny):
    ids, _ = tiny.encode(["\ud800 dog", "x" * (2 * MAX_CHARACTERS)])
    assert ids.min() >= 0


def test_the_fingerprint_follows_everything_that_changes_ids(tmp_path, monkeypatch):
    def fingerprint(merges=MERGES, **changes):
        monkeypatch.setattr(tokenizer_files, "OPENAI_MERGES", len(merges))
        content = tokenizer_files.from_openai_merges(merges_file(tmp_path / "bpe.gz", merges))
        return ClipTokenizer(content, TokenizerConfig(**changes)).fingerprint

    every = [
        fingerprint(),
        fingerprint(MERGES[:-1]),
        fingerprint(padding=1),
        fingerprint(cleaning="huggingface"),
    ]
    assert len(set(every)) == 4
    assert fingerprint() == every[0]


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("plain text", "plain text"),
        ("“Curly” ‘quotes’", "\"Curly\" 'quotes'"),
        ("ﬁne ǆ", "fine dž"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "Full width"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\x1b[36mblue\x1b[0m", "blue"),
        ("\x80 \x81", "€ \x81"),
        ("&amp;lt;b", "<b"),
        ("<i>&amp;</i>", "<i>&amp;</i>"),
        ("e\u0301", "é"),
        ("\ufeffa\x00b", "ab"),
    ],
)
def test_text_is_repaired(text, fixed):
    assert fix_text(text) == fixed


@pytest.mark.parametrize(
    ("kind", "cleaning", "cleaned"),
    [
        ("clip", "openai", "a_dog's &c. naïve"),
        ("clip", "huggingface", " A_Dog’s  &amp;C. NAÏVE "),
        ("siglip", "openai", "a dogs c naïve"),
        ("siglip", "huggingface", "adog’s ampc naïve"),
        ("siglip2", "openai", "a dogs c naïve"),
        ("siglip2", "huggingface", " A_Dog’s  &amp;C. NAÏVE "),
    ],
)
def test_each_publisher_cleans_in_its_own_way(kind, cleaning, cleaned):
    assert clean(" A_Dog’s  &amp;C. NAÏVE ", TokenizerConfig(kind=kind, cleaning=cleaning)) == cleaned


# ---- files in Hugging Face layout ----------------------------------------------------


def clip_folder(folder, **changes):
    tokens = [
        *LETTERS,
        *(letter + "</w>" for letter in LETTERS),
        *(merge.replace(" ", "") for merge in MERGES),
    ]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    model = {"type": "BPE", "vocab": {token: number for number, token in enumerate(tokens)}, "merges": MERGES}
    # A pipeline of the file's own, which must not be used.
    content = {
        "normalizer": {"type": "Replace", "pattern": {"String": "dog"}, "content": "cat"},
        "model": model,
    }
    content["model"] |= changes
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


HUGGINGFACE = TokenizerConfig(length=12, cleaning="huggingface")
COUNT = 514 + len(MERGES)


def test_a_folder_brings_its_vocabulary_and_nothing_else(tmp_path, tiny):
    folder = clip_folder(tmp_path / "a")
    tokenizer = ClipTokenizer(tokenizer_files.from_folder(folder, HUGGINGFACE, COUNT), HUGGINGFACE)
    texts = ["The dog's running", "dog", "a  THE\tdog"]
    np.testing.assert_array_equal(tokenizer.encode(texts)[0], tiny.encode(texts)[0])
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES, ""]))
    older = tokenizer_files.from_folder(folder, HUGGINGFACE, COUNT)
    assert ClipTokenizer(older, HUGGINGFACE).fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocab": {"a": 0}}, "damaged"),
        ({"vocab": {"a": 10**7}, "merges": []}, "out of range"),
        ({"vocab": {"a": 1, "b": 1}, "merges": []}, "one id to two"),
        ({"vocab": {"a": "0"}, "merges": []}, "out of range"),
        ({"vocab": {"a": 1}, "merges": []}, "no <|startoftext|>"),
        ({"vocab": [["a", 0.0]]}, "not the byte-pair vocabulary"),
        ({"merges": ["a b c"]}, "no pair"),
        ({"merges": [3]}, "no pair"),
        ({"merges": "a b"}, "not the byte-pair vocabulary"),
    ],
)
def test_bad_vocabularies_are_refused(tmp_path, changes, said):
    with pytest.raises(WeightsError, match=re.escape(said)):
        tokenizer_files.from_folder(clip_folder(tmp_path / "a", **changes), HUGGINGFACE, COUNT)


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    folder = clip_folder(tmp_path / "a")
    with pytest.raises(WeightsError, match=f"the token {COUNT - 1}, the text tower only 100 tokens"):
        tokenizer_files.from_folder(folder, HUGGINGFACE, 100)
    with pytest.raises(WeightsError, match="not the unigram vocabulary"):
        tokenizer_files.from_folder(folder, TokenizerConfig(kind="siglip"), COUNT)
    with pytest.raises(WeightsError, match="padded with the token 9999"):
        tokenizer_files.from_folder(folder, TokenizerConfig(padding=9999), COUNT)


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "[]", '{"model": 3}', "\x00"])
def test_what_is_no_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(WeightsError, match=r"no JSON file|holds no tokenizer"):
        tokenizer_files.from_folder(tmp_path, HUGGINGFACE, COUNT)


def test_absent_and_huge_files_are_refused(tmp_path):
    with pytest.raises(WeightsError, match="no tokenizer"):
        tokenizer_files.from_folder(tmp_path, HUGGINGFACE, COUNT)
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(tokenizer_files.MAX_BYTES + 1)
    with pytest.raises(WeightsError, match="more than 64 MB"):
        tokenizer_files.from_folder(tmp_path, HUGGINGFACE, COUNT)


# ---- SentencePiece -------------------------------------------------------------------

PIECES = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
PIECES += [("▁", -4.0), ("▁do", -3.0), ("g", -3.5), ("▁dog", -2.0), ("s", -3.0), ("o", -5.0), ("▁a", -2.0)]
SIGLIP = TokenizerConfig(kind="siglip", length=8, padding=1)


def field(number, content):
    if isinstance(content, int):
        return bytes([number << 3, content])
    if isinstance(content, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", content)
    size = len(content)
    return (
        bytes([number << 3 | 2])
        + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7]))
        + content
    )


def sentencepiece(pieces=PIECES):
    kinds = {"<unk>": 2, "<pad>": 3, "</s>": 3}
    parts = [
        field(1, field(1, piece.encode()) + field(2, score) + field(3, kinds.get(piece, 1)))
        for piece, score in pieces
    ]
    return b"".join(parts) + field(2, field(3, 1)) + field(3, field(1, b"identity"))


def naive_unigram(text):
    """The most likely split, by trying all of them; unknown letters cost 10 more than the worst piece."""
    scores = dict(PIECES[3:])

    def best(rest):
        if not rest:
            return 0.0, []
        tries = [(s + best(rest[len(p) :])[0], p) for p, s in scores.items() if rest.startswith(p)]
        tries.append((min(scores.values()) - 10 + best(rest[1:])[0], rest[0]))
        score, piece = max(tries)
        return score, [piece, *best(rest[len(piece) :])[1]]

    ids = []
    for word in clean(text, SIGLIP).split():
        for piece in best("▁" + word)[1]:
            number = [name for name, _ in PIECES].index(piece) if piece in scores else 2
            if number != 2 or not ids or ids[-1] != 2:
                ids.append(number)
    return ids


@pytest.mark.parametrize("text", ["a dog", "Dogs, dogs!", "good a", "xylo dog", "a sss"])
def test_sentencepiece_takes_the_most_likely_split(tmp_path, text):
    (tmp_path / "spiece.model").write_bytes(sentencepiece())
    content = tokenizer_files.from_folder(tmp_path, SIGLIP, len(PIECES))
    ids, mask = ClipTokenizer(content, SIGLIP).encode([text], length=20)
    assert ids[0][mask[0]].tolist() == [*naive_unigram(text), 1]
    assert (ids[~mask] == 1).all()
    model = {"type": "Unigram", "unk_id": 2, "vocab": PIECES}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model, "normalizer": None}))
    assert tokenizer_files.from_folder(tmp_path, SIGLIP, len(PIECES)) == content


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 30,
        sentencepiece()[:-40] + b"\x0a\xff\xff\xff\xff\x7f",
        field(1, field(1, b"\xff\xfe")),
        b"\x0b",
        b"",
        sentencepiece([("a", 0.0)]),
    ],
)
def test_damaged_sentencepiece_models_are_refused(tmp_path, data):
    (tmp_path / "spiece.model").write_bytes(data)
    with pytest.raises(WeightsError, match=r"damaged|no piece for unknown"):
        tokenizer_files.from_folder(tmp_path, SIGLIP, len(PIECES))


@pytest.mark.parametrize(
    ("model", "charsmap", "said"),
    [
        ({"unk_id": 2, "vocab": [["a"]]}, None, "without a score"),
        ({"unk_id": 99, "vocab": PIECES}, None, "no piece for unknown"),
        ({"vocab": PIECES}, None, "no piece for unknown"),
        ({"unk_id": 2, "vocab": PIECES}, "%%%", "damaged"),
        ({"unk_id": 2, "vocab": PIECES}, base64.b64encode(b"\xff" * 9).decode(), "damaged"),
    ],
)
def test_bad_unigram_vocabularies_are_refused(tmp_path, model, charsmap, said):
    step = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    content = {"model": model, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, step]}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(WeightsError, match=said):
        tokenizer_files.from_folder(tmp_path, SIGLIP, len(PIECES))


def test_siglip2_is_a_byte_pair_encoding_of_whole_texts(tmp_path):
    tokens = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "a",
        "▁",
        "b",
        "▁b",
        "B",
    ]
    model = {"vocab": {token: number for number, token in enumerate(tokens)}, "merges": [["▁", "b"]]}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    config = TokenizerConfig(kind="siglip2", length=6, cleaning="huggingface")
    tokenizer = ClipTokenizer(tokenizer_files.from_folder(tmp_path, config, len(tokens)), config)
    ids, _ = tokenizer.encode(["A B", "é", "ab ab ab ab"])
    a, space, b, joined = (tokens.index(token) for token in ("a", "▁", "b", "▁b"))
    assert ids[0].tolist() == [a, joined, 1, 0, 0, 0]
    assert ids[1].tolist() == [4 + 0xC3, 4 + 0xA9, 1, 0, 0, 0]
    assert ids[2].tolist() == [a, b, space, a, b, 1]


# ---- OpenAI's vocabulary ---------------------------------------------------------------


@pytest.mark.skipif(
    not WeightStore().has(CLIP_VOCABULARY), reason=f"run `wordreel weights fetch {CLIP_VOCABULARY}`"
)
def test_openai_vocabulary():
    tokenizer = clip_tokenizer(length=16)
    assert tokenizer.vocabulary == 49408
    ids, _ = tokenizer.encode(["a photo of a cat", "Hello, World's 123"])
    assert ids[0].tolist() == [49406, 320, 1125, 539, 320, 2368, 49407, *[0] * 9]
    assert ids[1][:9].tolist() == [49406, 3306, 267, 1002, 568, 272, 273, 274, 49407]
