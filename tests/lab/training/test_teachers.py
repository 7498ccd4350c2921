"""Teachers, denoising, fine-tuning, frozen beginnings."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import BERT, CONFIGS, EXPERTS, toy_data, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.models.batch import QueryEmbeddings, VideoEmbeddings  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.checkpoint import load_module, save  # noqa: E402
from wordreel.lab.models.config import ExpertConfig  # noqa: E402
from wordreel.lab.training.init_weights import fine_tune, init_text, init_weights  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.settings import StartSettings, TeachSettings  # noqa: E402
from wordreel.lab.training.teachers import Teacher, Teachers, denoised, from_model  # noqa: E402


@pytest.fixture
def taught(tmp_path):
    """Two trained teachers and the material they know."""
    held = toy_data(CONFIGS["ce"])
    folders = []
    for seed in (0, 1):
        recipe = toy_recipe("ce", epochs=20, batch=12, validate_every=20).with_seed(seed)
        folders.append(train(recipe, held, tmp_path / f"teacher{seed}", device="cpu").last)
    return held, folders


def test_a_student_learns_its_teachers_similarities(tmp_path, taught):
    held, folders = taught
    teachers = Teachers(tuple(from_model(folder, held.train) for folder in folders))
    everything = torch.arange(12)
    firsts = torch.from_numpy(np.cumsum(held.train.counts) - held.train.counts)
    target = teachers.similarities(everything, firsts).mean(dim=0)
    recipe = toy_recipe("ce", epochs=40, batch=12, validate_every=40).with_seed(5)

    def gap(weight, name):
        one = replace(recipe, teach=TeachSettings(tuple(map(str, folders)), weight=weight))
        out = train(one, replace(held, teachers=teachers), tmp_path / name, device="cpu").last
        return float((from_model(out, held.train).similarities(everything, firsts) - target).abs().mean())

    assert gap(20.0, "student") < 0.6 * gap(0.0, "alone")


def test_a_teachers_similarities_are_its_models(taught):
    from wordreel.lab.training.data.caption_store import CaptionStore
    from wordreel.lab.training.data.feature_store import FeatureStore
    from wordreel.lab.training.measure import embed_texts, embed_videos, similarity_matrix
    from wordreel.lab.training.optimisers import TrainingPrecision

    held, folders = taught
    cpu, precision = torch.device("cpu"), TrainingPrecision("float32", "cpu")
    teachers = Teachers(tuple(from_model(folder, held.train) for folder in folders))
    videos, captions = torch.tensor([3, 1, 8]), torch.tensor([5, 0])
    for number, folder in enumerate(folders):
        module, _ = load_module(folder)
        features, texts = FeatureStore(held.train, module.config, cpu), CaptionStore(held.train_words, cpu)
        shown = embed_videos(module, features, precision)
        whole = similarity_matrix(embed_texts(module, texts, precision), shown)
        found = teachers.similarities(videos, captions)[number]
        assert np.allclose(found.numpy(), whole[captions][:, videos], atol=1e-5)


def test_denoising_keeps_what_teachers_can_place_and_one_caption_each():
    held = toy_data(CONFIGS["ce"])
    count, videos = int(held.train.counts.sum()), 12
    sims = np.random.default_rng(0).normal(size=(count, videos)).astype(np.float32)
    teacher = Teacher(
        VideoEmbeddings(torch.eye(videos)[:, None], torch.ones(videos, 1, dtype=torch.bool)),
        QueryEmbeddings(torch.from_numpy(sims)[:, None], torch.ones(count, 1)),
        plain=True,
    )
    kept = denoised(Teachers((teacher,)), held.train, 3)
    owner = np.repeat(np.arange(videos), held.train.counts)
    for caption in range(count):
        rank = 1 + (sims[caption] > sims[caption, owner[caption]]).sum()
        ranks = [1 + (sims[c] > sims[c, owner[c]]).sum() for c in np.flatnonzero(owner == owner[caption])]
        assert kept[caption] == (rank <= 3 or rank == min(ranks))
    fewer = held.train.select_captions(kept)
    assert (fewer.counts >= 1).all()
    assert (
        len(Teachers((teacher,)).select_captions(kept).each[0].queries.vectors)
        == kept.sum()
        == fewer.counts.sum()
    )


def test_fine_tuning_extends_the_tables_with_zeros(tmp_path):
    config = CONFIGS["mmt"]
    torch.manual_seed(0)
    old = build(config)
    save(tmp_path, old, "old")
    longer = replace(config, positions=20, types=7)
    new = build(longer)
    assert init_weights(new, StartSettings(model=str(tmp_path))) == []
    table = new.transformer.position_embeddings.weight
    assert torch.equal(table[:8], old.transformer.position_embeddings.weight)
    assert (table[8:] == 0).all()
    assert torch.equal(new.transformer.encoder.layer[0].output.dense.weight,
                       old.transformer.encoder.layer[0].output.dense.weight)  # fmt: skip


@pytest.mark.parametrize("kind", ["mmt", "ce", "moee"])
def test_fine_tuning_matches_experts_by_name(tmp_path, kind):
    config = CONFIGS[kind]
    torch.manual_seed(0)
    old = build(config).eval()
    save(tmp_path, old, "old")
    turned = build(replace(config, experts=config.experts[::-1])).eval()
    assert fine_tune(turned, tmp_path) == []
    from wordreel.lab.training.data.caption_store import CaptionStore
    from wordreel.lab.training.data.feature_store import FeatureStore

    held, cpu = toy_data(config), torch.device("cpu")
    videos = torch.arange(5)
    tokens = CaptionStore(held.train_words, cpu).batch(videos)
    one = old.similarities(FeatureStore(held.train, old.config, cpu).batch(videos), tokens)
    other = turned.similarities(FeatureStore(held.train, turned.config, cpu).batch(videos), tokens)
    assert torch.allclose(one, other, atol=1e-5)


def test_new_experts_begin_afresh_and_foreign_models_are_refused(tmp_path):
    save(tmp_path, build(CONFIGS["ce"]), "old")
    more = build(replace(CONFIGS["ce"], experts=(*EXPERTS, ExpertConfig("smell", 3))))
    fresh = fine_tune(more, tmp_path)
    assert any(name.startswith("project.3.") for name in fresh)
    assert not any(name.startswith("project.0.") for name in fresh)
    with pytest.raises(TrainingError, match="is a ce model"):
        fine_tune(build(CONFIGS["mmt"]), tmp_path)


def test_published_text_weights_are_put_in_place(tmp_path):
    from safetensors.torch import save_file

    source = build(CONFIGS["mmt"]).caption.words
    held = {
        f"bert.{k}".replace("LayerNorm.weight", "LayerNorm.gamma"): v for k, v in source.state_dict().items()
    }
    save_file(held, tmp_path / "model.safetensors")
    fresh = build(CONFIGS["mmt"])
    init_text(fresh, str(tmp_path))
    name = "embeddings.LayerNorm.weight"
    assert torch.equal(fresh.caption.words.state_dict()[name], source.state_dict()[name])
    small = replace(CONFIGS["mmt"], text=replace(BERT, network=replace(BERT.network, vocabulary=31)))
    with pytest.raises(TrainingError, match="word_embeddings"):
        init_text(build(small), str(tmp_path))
    with pytest.raises(TrainingError, match=r"start\.text"):
        init_text(fresh, str(tmp_path / "nowhere"))
