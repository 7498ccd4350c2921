"""Our tokenizers against open_clip's and `transformers`', on 10,000 captions (WORDREEL_TEST_CAPTIONS)."""

import importlib.util
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

from wordreel.backbones import tokenizer_files
from wordreel.backbones.config import TokenizerConfig
from wordreel.backbones.tokenizer import CLIP_VOCABULARY, ClipTokenizer, clip_tokenizer
from wordreel.runtime.store import WeightStore

pytestmark = pytest.mark.slow
transformers = pytest.importorskip("transformers")
COUNT = 10_000
ODD = [
    "“Curly” ‘quotes’", "ﬁne ﬂ ǆ ĳ ŉ", "Ｆｕｌｌ　ｗｉｄｔｈ ｱｲｳ", "a\r\nb\rc\u2028d",
    "\x1b[36mblue\x1b[0m", "\x80uro \x85 \x81",
    "&amp;lt; &eacute; <b>&amp;</b>", "&#39;s &nbsp; &hellip;", "e\u0301 é", "!!!", "日本語のテキスト 😀👍🏽",
    "a_b-c's don't I'M 1234½", "ΑΣ ΟΔΟΣ İstanbul ẞ", "x" * 300, "word " * 100,
    "\ufeffbom \x07bell", "Ⅷ ² ③ ٣",
    "naïve café — “test”… 10° £5 №1", "tab\tnew\nline",
]  # fmt: skip


@pytest.fixture(scope="module")
def captions():
    """Captions of every `captions.json` below the folder that the variable names, and odd texts."""
    folder = os.environ.get("WORDREEL_TEST_CAPTIONS")
    if folder is None:
        pytest.skip("set WORDREEL_TEST_CAPTIONS to a folder with captions.json files")
    found: set[str] = set()

    def gather(content):
        if isinstance(content, str):
            found.add(content)
        else:
            for part in content.values() if isinstance(content, dict) else content:
                gather(part)

    for path in Path(folder).rglob("captions.json"):
        gather(json.loads(path.read_text(encoding="utf-8")))
    assert len(found) >= COUNT
    return random.Random(0).sample(sorted(found), COUNT)


@pytest.fixture(scope="module")
def openai():
    store = WeightStore()
    store.fetch(CLIP_VOCABULARY)
    return clip_tokenizer(store)


@pytest.fixture(scope="module")
def open_clip_tokenizer():
    """open_clip's module alone, for the whole package needs much more than a tokenizer does."""
    package = importlib.util.find_spec("open_clip")
    if package is None:
        pytest.skip("open_clip is not installed")
    path = Path(package.submodule_search_locations[0]) / "tokenizer.py"
    spec = importlib.util.spec_from_file_location("open_clip_tokenizer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_clip_as_open_clip(captions, openai, open_clip_tokenizer):
    texts = [*captions, *ODD]
    np.testing.assert_array_equal(openai.encode(texts)[0], open_clip_tokenizer.tokenize(texts).numpy())


def test_clip_as_transformers(captions, openai, tmp_path):
    model = json.loads(WeightStore().file(CLIP_VOCABULARY).read_text(encoding="utf-8"))["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    theirs = transformers.CLIPTokenizerFast.from_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path / "saved")  # with a tokenizer.json
    texts = [*captions, *ODD]
    wanted = theirs(texts, padding="max_length", max_length=77, truncation=True, return_tensors="np")
    for folder in (tmp_path, tmp_path / "saved"):
        config = TokenizerConfig(cleaning="huggingface", padding=49407)
        ours = ClipTokenizer(tokenizer_files.from_folder(folder, config, 49408), config)
        ids, mask = ours.encode(texts)
        np.testing.assert_array_equal(ids, wanted["input_ids"])
        np.testing.assert_array_equal(mask, wanted["attention_mask"].astype(bool))


def test_siglip_as_transformers_and_sentencepiece(captions, tmp_path, open_clip_tokenizer):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "text.txt").write_text("\n".join(captions).lower(), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text.txt"), model_prefix=str(tmp_path / "spiece"), vocab_size=4000,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    theirs = transformers.SiglipTokenizer(str(tmp_path / "spiece.model"))
    config = TokenizerConfig(kind="siglip", length=64, padding=1, cleaning="huggingface")
    ours = ClipTokenizer(tokenizer_files.from_folder(tmp_path, config, 4000), config)
    texts = [*captions, *(text for text in ODD if text != "!!!")]
    wanted = theirs(texts, padding="max_length", max_length=64, truncation=True)["input_ids"]
    np.testing.assert_array_equal(ours.encode(texts)[0], np.array(wanted))

    processor = sentencepiece.SentencePieceProcessor(str(tmp_path / "spiece.model"))
    config = TokenizerConfig(kind="siglip", length=64, padding=1)
    ours = ClipTokenizer(tokenizer_files.from_folder(tmp_path, config, 4000), config)
    for text, ids, mask in zip(texts, *ours.encode(texts), strict=True):
        cleaned = open_clip_tokenizer.get_clean_fn("canonicalize")(text)
        assert ids[mask].tolist() == [*processor.encode(cleaned)[:63], 1], text


def test_siglip2_as_transformers(captions, tmp_path):
    from tokenizers import Tokenizer, models, normalizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))  # noqa: S106
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "▁")])
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=special, max_token_length=12, show_progress=False
    )
    tokenizer.train_from_iterator(captions[:2000], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    theirs = transformers.Siglip2Tokenizer(vocab=model["vocab"], merges=merges)
    theirs.save_pretrained(tmp_path)
    config = TokenizerConfig(kind="siglip2", length=64, cleaning="huggingface")
    ours = ClipTokenizer(tokenizer_files.from_folder(tmp_path, config, 3000), config)
    texts = [*captions, *ODD]
    for text, ids, mask in zip(texts, *ours.encode(texts), strict=True):
        wanted = theirs(text, add_special_tokens=False)["input_ids"]
        assert ids[mask].tolist() == [*wanted[:63], 1], text
