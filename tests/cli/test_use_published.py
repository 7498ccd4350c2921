"""`wordreel use CHECKPOINT.pth`: released checkpoints answer searches on imported features."""

import json
from collections import OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.checkpoints.test_convert import mmt_names  # noqa: E402
from tests.lab.datasets.trees.published import IDS, write_ce, write_mmt, write_moee_msrvtt  # noqa: E402
from tests.lab.models import twins  # noqa: E402
from tests.lab.models.small import model as small_model  # noqa: E402
from tests.published_checkpoint import save_checkpoint  # noqa: E402

from wordreel.errors import LibraryError, WeightsError, WeightsMissing  # noqa: E402
from wordreel.lab.models.config import ExpertConfig, MMTConfig, TextConfig, TransformerConfig  # noqa: E402

WORDS = {"a": [1, 0, 0, 0], "man": [0, 1, 0.5, 0], "sings": [0, 0, 1, -1], "dog": [-1, 0.2, 0, 1]}
TEXTS = ["a man sings", "dog", "a dog sings a man"]


def word_file(path):
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in WORDS.items()))
    return path


def scores(wordreel, text):
    """Video id → score, as `wordreel search` gives it."""
    hits = json.loads(wordreel("search", text, "--json", "--limit", 10))
    return {hit["path"].rpartition("/")[2]: hit["score"] for hit in hits}


def padded(values, most, dim):
    """Rows as the published loaders pad them, and whether there are any."""
    rows = np.zeros((most, dim), np.float32)
    if isinstance(values, float) or np.size(values) == 0 or np.isnan(values).all():
        return rows, False
    rows[: min(most, len(values))] = values[:most]
    return rows, True


CE_EXPERTS = (("audio", 3, 2, 5), ("face", 5, 0, 0), ("ocr", 4, 3, 4), ("scene.densenet161.0", 7, 0, 0))


def ce_settings(**args):
    return OrderedDict(
        experts={"modalities": ["scene.densenet161.0", "face", "ocr", "audio"], "text_feat": "w2v"},
        arch={"type": "CENet", "args": {"use_ce": "pairwise", "use_mish": 1, "include_self": 1, **args}},
        data_loader={
            "args": {"dataset_name": "MSRVTT", "max_tokens": {"audio": 5, "ocr": 4, "text": 6, "speech": 9}}
        },
    )


def ce_similarities(twin, features, text):
    """The published network on the published features of every video; `text` is words or their vectors."""
    video, available = [], []
    for name, dim, clusters, most in CE_EXPERTS:
        rows, present = [], []
        for item in IDS:
            value = features[name].get(item, float("nan"))
            if clusters:
                row, there = padded(value, most, dim)
            else:
                there = not np.isnan(value).all()
                row = np.asarray(value, np.float32) if there else np.zeros(dim, np.float32)
            rows.append(row)
            present.append(there)
        video.append(torch.tensor(np.stack(rows)))
        available.append(torch.tensor(present))
    known = np.array([WORDS[word] for word in text.split()]) if isinstance(text, str) else text
    tokens = np.zeros((1, 6, known.shape[1]), np.float32)
    tokens[0, : len(known)] = known
    with torch.no_grad():
        sims = twin(video, torch.stack(available, dim=1), torch.from_numpy(tokens))
    return dict(zip(IDS, sims[0].tolist(), strict=True))


@pytest.mark.parametrize("old", [False, True], ids=["zip", "stream"])
def test_ce_answers_searches_with_the_published_similarities(wordreel, tmp_path, old):
    features = write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    torch.manual_seed(0)
    twin = twins.stir(twins.Net("ce", CE_EXPERTS, (4, 3, 1), 8))
    path = save_checkpoint(tmp_path / "trained_model.pth", twin.state_dict(), ce_settings(), old)
    words = word_file(tmp_path / "words.txt")
    used = json.loads(wordreel("use", path, "--text", words, "--json"))
    assert (used["name"], used["embedded"], used["notes"]) == ("ce-msrvtt", 4, [])
    path.unlink(), words.unlink()  # the library has its own copy
    for text in TEXTS:
        expected = ce_similarities(twin, features, text)
        assert scores(wordreel, text) == pytest.approx(expected, abs=1e-5)
    assert json.loads(wordreel("use", "ce-msrvtt", "--json"))["embedded"] == 0


def gpt_folder(folder):
    """A small GPT as Hugging Face publishes it; its network."""
    from safetensors.torch import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    from wordreel.lab.models.text.bert import Gpt

    network = twins.stir(Gpt(TransformerConfig(5, 8, 2, 2, 32, 20, 0), second=False))
    folder.mkdir()
    save_file({f"transformer.{key}": value for key, value in network.state_dict().items()},
              folder / "model.safetensors")  # fmt: skip
    sizes = {"vocab_size": 5, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 20}
    (folder / "config.json").write_text(json.dumps({"model_type": "openai-gpt", **sizes}))
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, **{word: n for n, word in enumerate(WORDS, 1)}}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return network


def test_ce_reads_captions_with_a_gpt(wordreel, tmp_path):
    features = write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    network = gpt_folder(tmp_path / "openai-gpt")
    twin = twins.stir(twins.Net("ce", CE_EXPERTS, (8, 3, 1), 8))
    path = save_checkpoint(tmp_path / "a.pth", twin.state_dict(), ce_settings())
    wordreel("use", path, "--text", tmp_path / "openai-gpt")
    for text in TEXTS:
        ids = torch.tensor([[1 + list(WORDS).index(word) for word in text.split()]])
        with torch.no_grad():
            states = network(ids, torch.ones_like(ids, dtype=torch.bool))[0].numpy()
        expected = ce_similarities(twin, features, states)
        assert scores(wordreel, text) == pytest.approx(expected, abs=1e-5)


def test_paper_mode_is_another_model(wordreel, tmp_path):
    features = write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    twin = twins.stir(twins.Net("ce", CE_EXPERTS, (4, 3, 1), 8))
    path = save_checkpoint(tmp_path / "a.pth", twin.state_dict(), ce_settings())
    words = word_file(tmp_path / "words.txt")
    used = json.loads(wordreel("use", path, "--text", words, "--mode", "paper", "--name", "mine", "--json"))
    assert used["name"] == "mine"
    expected = ce_similarities(twin, features, TEXTS[0])
    assert scores(wordreel, TEXTS[0]) != pytest.approx(expected, abs=1e-3)


MMT_EXPERTS = tuple(
    ExpertConfig(name, dim, max_tokens=5, type_id=number, timed=timed)
    for name, dim, number, timed in (
        ("face", 5, 3, False), ("rgb", 6, 5, True), ("s3d", 8, 1, True), ("speech", 4, 6, False),
    )
)  # fmt: skip
BERT = TextConfig(
    "bert", 8, "cls", network=TransformerConfig(9, 8, 2, 2, 16, 20, 2), max_tokens=6, source="wordpiece"
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "man", "sings", "dog", "."]


def test_mmt_answers_searches_with_its_own_similarities(wordreel, tmp_path):
    pytest.importorskip("h5py")
    from wordreel.catalogue.store import LibraryStore
    from wordreel.embed.switch_model import library_names
    from wordreel.lab.models.batch import TokenBatch
    from wordreel.lab.models.collate import clip_rows, collate

    write_mmt(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    config = MMTConfig(
        MMT_EXPERTS, BERT, 8, layers=2, heads=2, inner=16, positions=12, types=19, mode="released",
        keep_missing=True,
    )  # fmt: skip
    module = twins.stir(small_model(config))
    mix = {"dataset_name": "MSRVTT", "max_text_words": 6, "max_expert_tokens": 5}
    settings = OrderedDict(
        exp_name="jsfusion",
        arch={
            "args": {
                "keep_missing_modalities": True, "txt_agg": "bertftn",
                "vid_bert_params": {"num_attention_heads": 2}, "txt_bert_params": {"num_attention_heads": 2},
            }
        },
        train_sets=[{"args": {"mix": [mix]}}],
    )  # fmt: skip
    path = save_checkpoint(tmp_path / "trained_model.pth", mmt_names(module), settings)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n")
    used = json.loads(wordreel("use", path, "--text", vocabulary, "--json"))
    assert (used["name"], used["embedded"], used["notes"]) == ("jsfusion", 4, [])
    with LibraryStore.open(tmp_path / "library") as store:
        names = library_names(store, "mmt", {expert.name: expert.dim for expert in MMT_EXPERTS})
        assert names["s3d"] == "mmt/s3d"
        videos = []
        for item in IDS:
            (clip,) = store.clips(store.file(f"dataset:MSRVTT/{item}").content)
            (tracks,) = store.present_tracks([clip.content], tuple(names.values()))
            videos.append(
                {name: clip_rows(tracks[own], clip.clip) for name, own in names.items() if own in tracks}
            )
    for text in TEXTS:
        pieces = ["[CLS]", *text.split()[:6], ".", "[SEP]"]
        ids = [VOCABULARY.index(piece) for piece in pieces]
        ids = [*ids[:5], ids[-1]] if len(ids) > 6 else ids
        tokens = TokenBatch(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))
        with torch.no_grad():
            sims = module.similarities(collate(videos, config), tokens)[0]
        assert scores(wordreel, text) == pytest.approx(dict(zip(IDS, sims.tolist(), strict=True)), abs=1e-5)


MOEE_EXPERTS = (("face", 5, 0, 0), ("audio", 3, 2, 30), ("visual", 8, 0, 0), ("motion", 6, 0, 0))


def moee_similarities(twin, features, text, order):
    """MoEE's own code: units by name, mixture weights in the order of the video's dictionary."""
    inner, count = twin.mee, len(MOEE_EXPERTS)
    tokens = np.zeros((1, 30, 4), np.float32)
    known = [WORDS[word] for word in text.split()]
    tokens[0, : len(known)] = known
    names = [name for name, *_ in MOEE_EXPERTS]
    result = {}
    for item in IDS:
        rows, present = {}, {}
        for m, (name, dim, clusters, most) in enumerate(MOEE_EXPERTS):
            value = np.asarray(features[name].get(item, ()), np.float32)
            present[name] = bool(value.size and value.any())
            value = value if present[name] else np.zeros((1, dim) if clusters else dim, np.float32)
            x = torch.tensor(padded(value, most, dim)[0] if clusters else value)[None]
            rows[name] = inner.video_GU[m](twin.pools[name](x) if clusters else x)[0]
        caption = twin.text_pooling(torch.from_numpy(tokens))
        weights = torch.softmax(inner.moe_fc(caption), dim=1)[0]
        share = {name: weights[order.index(name)] * present[name] for name in names}
        total = sum(share.values())
        result[item] = float(
            sum(
                share[names[m]] / total * (inner.text_GU[m](caption)[0] @ rows[names[m]])
                for m in range(count)
            )
        )
    return result


@pytest.mark.parametrize(
    ("option", "order"),
    [
        ("ordered", ["audio", "face", "motion", "visual"]),
        ("unordered", ["face", "audio", "visual", "motion"]),
    ],
)
def test_moee_pairs_mixture_weights_with_experts_in_the_order_named(wordreel, tmp_path, option, order):
    features = write_moee_msrvtt(tmp_path / "data")
    wordreel("import", tmp_path / "data", "--dataset", "MSRVTT")
    torch.manual_seed(1)
    twin = twins.stir(twins.Net("moee", MOEE_EXPERTS, (4, 3, 0), 0, own=True))
    torch.save(twin.state_dict(), tmp_path / "moee.pth")
    words = word_file(tmp_path / "words.txt")
    wordreel("use", tmp_path / "moee.pth", "--text", words, "--moee-order", option)
    for text in TEXTS:
        with torch.no_grad():
            expected = moee_similarities(twin, features, text, order)
        assert scores(wordreel, text) == pytest.approx(expected, abs=1e-5)


def test_what_is_missing_is_named(wordreel, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    twin = twins.Net("ce", CE_EXPERTS, (4, 3, 1), 8)
    path = save_checkpoint(tmp_path / "a.pth", twin.state_dict(), ce_settings())
    with pytest.raises(WeightsMissing, match=r"w2v vectors of 4 numbers.*--text FILE"):
        wordreel("use", path)
    short = tmp_path / "short.txt"
    short.write_text("a 1 0\nman 0 1\n")
    with pytest.raises(WeightsError, match="vectors of 2 numbers; the checkpoint takes 4"):
        wordreel("use", path, "--text", short)
    bare = save_checkpoint(tmp_path / "bare.pth", twin.state_dict(), {})
    words = word_file(tmp_path / "words.txt")
    with pytest.raises(WeightsError, match=r"4 experts, and nothing says which.*--config config\.json"):
        wordreel("use", bare, "--text", words)
    (tmp_path / "config.json").write_text(json.dumps(ce_settings()))
    assert "is in use" in wordreel("use", bare, "--text", words)
    other = save_checkpoint(tmp_path / "b.pth", twin.state_dict(), ce_settings(use_ce="triplet"))
    with pytest.raises(WeightsError, match="use_ce='triplet', which is not supported"):
        wordreel("use", other, "--text", words)
    torch.save({"state_dict": {"encoder.weight": torch.zeros(2, 2)}}, tmp_path / "other.pth")
    with pytest.raises(WeightsError, match="not a checkpoint of CE, MoEE or MMT"):
        wordreel("use", tmp_path / "other.pth", "--text", words)
    wordreel("use", "joint", "--mode", "paper", code=2)
    assert not (tmp_path / "library" / ".converted").exists()


def test_features_of_another_size_are_refused(wordreel, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    experts = (("audio", 3, 2, 5), ("face", 9, 0, 0), ("ocr", 4, 3, 4), ("scene.densenet161.0", 7, 0, 0))
    twin = twins.Net("ce", experts, (4, 3, 1), 8)
    path = save_checkpoint(tmp_path / "a.pth", twin.state_dict(), ce_settings())
    with pytest.raises(LibraryError, match="ce/face of 9 numbers, where the library has 5"):
        wordreel("use", path, "--text", word_file(tmp_path / "words.txt"))
    assert json.loads(wordreel("use", "--json"))[0]["in_use"]
