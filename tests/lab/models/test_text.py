"""Captions: networks, pooling, tokens and wording."""

import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models import twins  # noqa: E402
from tests.lab.models.small import TINY  # noqa: E402
from torch import nn  # noqa: E402

from wordreel.errors import WeightsError, WeightsMissing  # noqa: E402
from wordreel.lab.models.config import MINILM, TextConfig  # noqa: E402
from wordreel.lab.models.text.bert import Bert, Gpt  # noqa: E402
from wordreel.lab.models.text.caption_encoder import Lstm, caption_encoder  # noqa: E402
from wordreel.lab.models.text.tokenizers import open_tokenizer, padded, sentence, without_stop_words  # noqa: E402  # noqa: E402
from wordreel.lab.models.text.word_vectors import read_word_vectors  # noqa: E402
from wordreel.runtime.store import WeightStore  # noqa: E402

needs_minilm = pytest.mark.skipif(
    not WeightStore().has("minilm"), reason="needs the sentence encoder: wordreel weights fetch minilm"
)
IDS = torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
MASK = torch.tensor([[True, True, True, False], [True, True, False, False]])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@needs_minilm
def test_the_embedded_encoder_can_be_trained_on():
    from wordreel.lab.models.text.pretrained import minilm_weights

    text = TextConfig("bert", 384, "mean", network=MINILM, max_tokens=12)
    encoder = caption_encoder(text)
    encoder.words.load_state_dict({k: torch.from_numpy(v) for k, v in minilm_weights().items()})
    ids, mask = open_tokenizer(text).encode(["a dog runs", "cats"])
    assert ids.dtype == np.int64
    assert ids[0, 0] == 101
    out = encoder.eval()(torch.from_numpy(ids), torch.from_numpy(mask))
    assert out.shape == (2, 384)
    out.sum().backward()
    assert encoder.words.encoder.layer[0].output.dense.weight.grad.any()


@pytest.mark.parametrize("second", [False, True])
def test_gpt_looks_back_only_and_padding_is_behind(second):
    network = twins.stir(Gpt(TINY, second))
    states = network(IDS, MASK)
    other = IDS.clone()
    other[0, 2] = 30
    changed = network(other, MASK)
    torch.testing.assert_close(changed[0, :2], states[0, :2])
    assert not torch.allclose(changed[0, 2], states[0, 2])
    torch.testing.assert_close(network(IDS[1:, :2], MASK[1:, :2])[0], states[1, :2], rtol=1e-4, atol=1e-5)


def test_gpt_has_its_published_names():
    assert {
        "wte.weight",
        "wpe.weight",
        "h.0.attn.c_attn.weight",
        "h.1.mlp.c_proj.bias",
        "ln_f.weight",
    } <= set(Gpt(TINY, True).state_dict())
    assert {"tokens_embed.weight", "positions_embed.weight", "h.0.ln_2.bias"} <= set(
        Gpt(TINY, False).state_dict()
    )


def test_bert_has_its_published_names():
    names = set(Bert(TINY).state_dict())
    assert "embeddings.LayerNorm.weight" in names
    assert "encoder.layer.1.attention.self.query.weight" in names
    assert len(names) == 5 + 2 * 16 + 2


def test_lstm_ends_where_a_packed_sequence_ends():
    ours = Lstm(5, 6)
    x, lengths = torch.randn(3, 7, 5), torch.tensor([7, 2, 4])
    mask = torch.arange(7) < lengths[:, None]
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    _, (last, _) = ours.lstm(packed)
    torch.testing.assert_close(ours(x, mask), ours.fc(last[-1]))


@pytest.mark.parametrize("pool", ["max", "mean", "cls", "lstm", "vlad"])
@pytest.mark.parametrize("words", ["vectors", "table", "bert", "gpt", "gpt2"])
def test_pooling_hears_only_real_tokens(words, pool):
    text = TextConfig(
        words, 8, pool, 3, lstm=9, vocabulary=40, network=None if words in ("vectors", "table") else TINY,
        max_tokens=6,
    )  # fmt: skip
    encoder = twins.stir(caption_encoder(text))
    tokens = torch.randn(2, 4, 8) if words == "vectors" else IDS
    found = encoder(tokens, MASK)
    assert found.shape == (2, text.out)
    for row, length in enumerate((3, 2)):
        alone = encoder(tokens[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(found[row : row + 1], alone, rtol=1e-4, atol=1e-5)


def test_pools_by_hand():
    x = torch.randn(2, 4, 8)
    for pool, wanted in (("max", x[1, :2].max(0).values), ("mean", x[1, :2].mean(0)), ("cls", x[1, 0])):
        torch.testing.assert_close(caption_encoder(TextConfig("vectors", 8, pool))(x, MASK)[1], wanted)
    bert = twins.stir(caption_encoder(TextConfig("bert", 8, "max", network=TINY)))
    states = bert.words(IDS, MASK)
    torch.testing.assert_close(bert(IDS, MASK)[0], states[0, 1:3].max(0).values)


@pytest.mark.parametrize("pool", ["max", "mean"])
def test_released_pools_over_a_network_hear_all_empty_words_whatever_the_batch(pool):
    released = twins.stir(
        caption_encoder(TextConfig("bert", 8, pool, network=TINY, max_tokens=6), "released")
    )
    ids, mask = nn.functional.pad(IDS, (0, 2)), nn.functional.pad(MASK, (0, 2))
    states = released.words(ids, mask)[:, 1:]
    wanted = states.max(1).values if pool == "max" else states.mean(1)
    torch.testing.assert_close(released(ids, mask), wanted)
    torch.testing.assert_close(released(IDS, MASK), wanted)
    torch.testing.assert_close(released(IDS[1:, :2], MASK[1:, :2]), wanted[1:])


def test_released_netvlad_hears_the_empty_words():
    text = TextConfig("vectors", 8, "vlad", 3, 1, max_tokens=6)
    paper, released = caption_encoder(text).eval(), caption_encoder(text, "released").eval()
    released.load_state_dict(paper.state_dict())
    x = torch.randn(2, 4, 8) * MASK[:, :, None]
    whole = torch.cat((x, torch.zeros(2, 2, 8)), 1)
    torch.testing.assert_close(released(x, MASK), paper(whole, torch.ones(2, 6, dtype=torch.bool)))
    assert not torch.allclose(released(x, MASK), paper(x, MASK))


def test_freezing():
    def trained(**options):
        encoder = caption_encoder(TextConfig("bert", 8, "cls", network=TINY, **options))
        return {name for name, p in encoder.named_parameters() if p.requires_grad}

    assert trained(frozen=True) == set()
    some = trained(frozen_layers=1)
    assert not any("layer.0." in name or "embeddings" in name for name in some)
    assert any("layer.1." in name for name in some)
    assert not any("pooler" in name for name in trained())
    with pytest.raises(ValueError, match="one by one"):
        caption_encoder(TextConfig("table", 8, "max", vocabulary=9, frozen_layers=1))


def test_wording():
    assert sentence("what is this?") == "What is this?"
    assert sentence("one two three four", 2) == "One two."
    assert sentence("") == "."
    assert without_stop_words("The cat, and a dog.") == "cat dog"


@pytest.mark.parametrize("form", ["binary", "text", "glove"])
def test_word_vectors_of_every_form(tmp_path, form):
    words, vectors = ["</s>", "dog", "New_York", "日本"], np.random.default_rng(0).normal(size=(4, 3))
    vectors = vectors.astype(np.float32)
    path = tmp_path / "vectors"
    head = b"" if form == "glove" else b"4 3\n"
    if form == "binary":
        body = b"".join(w.encode() + b" " + v.tobytes() + b"\n" for w, v in zip(words, vectors, strict=True))
    else:
        body = b"".join(
            f"{w} {' '.join(map(repr, v.tolist()))}\n".encode() for w, v in zip(words, vectors, strict=True)
        )
    path.write_bytes(head + body)
    found = read_word_vectors(path)
    np.testing.assert_allclose(found.vectors, vectors, rtol=1e-6)
    np.testing.assert_allclose(found.look_up("a Dog! unknown"), vectors[1:2], rtol=1e-6)
    assert not found.look_up("nothing known").any()
    tokens, mask = open_tokenizer(TextConfig("vectors", 3, "max", source=f"word2vec:{path}")).encode(
        ["dog 日本", "dog"]
    )
    assert mask.tolist() == [[True, True], [True, False]]
    np.testing.assert_allclose(tokens[0], vectors[[1, 3]], rtol=1e-6)


def test_damaged_word_vectors_are_told(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(b"4 3\n" + b"dog " + np.ones(3, "<f4").tobytes() + b"\ncat ")
    with pytest.raises(WeightsError, match="cut short at word 2"):
        read_word_vectors(path)
    path.write_bytes(b"999999999999 300\n")
    with pytest.raises(WeightsError, match="not read"):
        read_word_vectors(path)
    path.write_bytes(b"dog 1 2\ncat 1\n")
    with pytest.raises(WeightsError, match="line 2"):
        read_word_vectors(path)


VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "run", "##s", "."]


def test_wordpieces_are_put_as_the_authors_do(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    text = TextConfig("bert", 8, "cls", network=TINY, max_tokens=6, source="wordpiece:.")
    tokens, mask = open_tokenizer(text, tmp_path).encode(["A DOG runs", "dog runs dog runs dog runs"])
    assert tokens.tolist() == [[2, 5, 6, 7, 8, 3], [2, 6, 7, 8, 6, 3]]  # cut captions end in [SEP] too
    assert mask.all()
    short = TextConfig("bert", 8, "cls", network=TINY, source="wordpiece:.", stop_words=False)
    assert open_tokenizer(short, tmp_path).encode(["a dog"])[0].tolist() == [[2, 6, 9, 3]]
    with pytest.raises(WeightsMissing, match="vocab"):
        open_tokenizer(text, tmp_path / "elsewhere")


def test_wordpieces_are_small_letters_even_where_the_vocabulary_has_capitals(tmp_path):
    """As published: the cased network reads captions in lower case."""
    from tokenizers import BertWordPieceTokenizer

    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "A", "Dog"]))
    text = TextConfig("bert", 8, "cls", network=TINY, source="wordpiece:.")
    by_list = open_tokenizer(text, tmp_path)
    for lowercase in (True, False):
        whole = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=lowercase)
        whole.save(str(tmp_path / "tokenizer.json"))
        found = open_tokenizer(text, tmp_path)
        for said in ("a Dog", "Dög a."):
            assert found.encode([said])[0].tolist() == by_list.encode([said])[0].tolist()
        assert found.fingerprint.endswith(":lower") is not lowercase  # capitals would be other tokens


def test_features_made_elsewhere_cannot_read_new_text():
    with pytest.raises(WeightsError, match="computed elsewhere"):
        open_tokenizer(TextConfig("vectors", 768, "mean", source="openai-gpt"))


def test_padding():
    tokens, mask = padded([np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)])
    assert tokens.shape == (2, 2, 3)
    assert mask.tolist() == [[True, True], [True, False]]


class StandIn(nn.Module):
    """As a Hugging Face encoder looks from outside."""

    def __init__(self):
        super().__init__()
        self.config = types.SimpleNamespace(hidden_size=8)
        self.bert = Bert(TINY)

    def forward(self, input_ids, attention_mask):
        return types.SimpleNamespace(last_hidden_state=self.bert(input_ids, attention_mask.bool()))


@pytest.fixture
def transformers(monkeypatch):
    library = types.ModuleType("transformers")

    def tokenizer(texts, truncation, max_length):
        return {"input_ids": [[2, *(5 + len(w) for w in text.split()), 3][:max_length] for text in texts]}

    library.AutoModel = types.SimpleNamespace(from_pretrained=lambda name, local_files_only: StandIn())
    library.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda name, local_files_only: tokenizer)
    monkeypatch.setitem(sys.modules, "transformers", library)


@pytest.mark.usefixtures("transformers")
def test_any_hugging_face_encoder():
    text = TextConfig("huggingface", 8, "mean", source="some/encoder", max_tokens=4)
    tokens, mask = open_tokenizer(text).encode(["a dog", "a dog runs far"])
    assert tokens.tolist() == [[2, 6, 8, 3], [2, 6, 8, 9]]
    encoder = caption_encoder(text).eval()
    assert encoder(torch.from_numpy(tokens), torch.from_numpy(mask)).shape == (2, 8)
    with pytest.raises(ValueError, match="8 numbers"):
        caption_encoder(TextConfig("huggingface", 9, "mean", source="some/encoder"))


class T5Stack(StandIn):
    """The half of an encoder-decoder that reads."""


@pytest.mark.usefixtures("transformers")
def test_of_an_encoder_and_decoder_the_encoder_reads_without_marks(monkeypatch):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = types.SimpleNamespace(hidden_size=8, is_encoder_decoder=True)
            self.encoder = T5Stack()

        def get_encoder(self):
            return self.encoder

        def forward(self, input_ids, attention_mask):
            raise ValueError("You have to specify decoder_input_ids")

    class T5TokenizerFast:
        def __call__(self, texts, truncation, max_length, add_special_tokens=True):
            marks = [1] if add_special_tokens else []
            return {"input_ids": [[*(5 + len(w) for w in text.split()), *marks] for text in texts]}

    library = sys.modules["transformers"]
    monkeypatch.setattr(library.AutoModel, "from_pretrained", lambda name, local_files_only: Both())
    monkeypatch.setattr(
        library.AutoTokenizer, "from_pretrained", lambda name, local_files_only: T5TokenizerFast()
    )
    text = TextConfig("huggingface", 8, "mean", source="t5-small", max_tokens=4)
    tokens, mask = open_tokenizer(text).encode(["a dog"])
    assert tokens.tolist() == [[6, 8]]
    encoder = caption_encoder(text).eval()
    assert encoder(torch.from_numpy(tokens), torch.from_numpy(mask)).shape == (1, 8)


def test_without_the_library_the_next_step_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(WeightsMissing, match="pip install transformers"):
        caption_encoder(TextConfig("huggingface", 8, "mean", source="some/encoder"))
