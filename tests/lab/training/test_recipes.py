"""Every recipe loads, builds and has its published size; overrides and mistakes."""

import pytest

from wordreel.errors import TrainingError
from wordreel.lab.training import recipe as recipes


def size_of(name, changes):
    torch = pytest.importorskip("torch")
    from wordreel.lab.models.build import build

    with torch.device("meta"):
        return sum(p.numel() for p in build(recipes.load(name, changes).model).parameters())


@pytest.mark.parametrize(
    ("name", "margin", "batch", "epochs", "lr", "gamma"),
    [
        ("ce-msvd", 0.30764700456522676, 16, 300, 0.01, 0.95),
        ("ce-didemo", 0.16642835966287484, 64, 30, 0.1, 0.95),
        ("ce-lsmdc", 0.12132983763957966, 256, 15, 0.01, 0.95),
        ("ce-activitynet", 0.060496613740311816, 32, 150, 0.1, 0.95),
        ("mmt-msrvtt-1k-a", 0.05, 32, 50, 5e-5, 0.95),
        ("mmt-activitynet", 0.05, 32, 50, 5e-5, 0.9),
        ("mmt-howto100m", 0.05, 64, 200, 5e-5, 0.98),
    ],
)
def test_published_settings(name, margin, batch, epochs, lr, gamma):
    recipe = recipes.load(name)
    settings = (
        recipe.loss.margin,
        recipe.run.batch,
        recipe.run.epochs,
        recipe.optimiser.lr,
        recipe.schedule.gamma,
    )
    assert settings == (margin, batch, epochs, lr, gamma)
    assert recipe.optimiser.kind == ("adam" if name.startswith("mmt") else "ranger")


MSRVTT = (64, 100, "ranger", 0.1, 1e-3, 0.09381161988446174)
DIDEMO, ACTIVITYNET, LSMDC, MSVD = (
    0.16642835966287484,
    0.060496613740311816,
    0.12132983763957966,
    0.30764700456522676,
)
ALL = (("audio", 128), ("face", 512), ("i3d.i3d.0", 1024), ("imagenet.resnext101_32x48d.0", 2048),
       ("imagenet.senet154.0", 2048), ("ocr", 300), ("r2p1d.r2p1d-ig65m.0", 512),
       ("scene.densenet161.0", 2208), ("speech", 300))  # fmt: skip
SMALL_FACE = tuple((name, 128 if name == "face" else dim) for name, dim in ALL)
SILENT = tuple(expert for expert in ALL if expert[0] not in ("audio", "speech"))
REFINED = tuple(sorted(
    [*(expert for expert in ALL if expert[0] not in ("face", "i3d.i3d.0", "ocr")),
     ("r2p1d.r2p1d-ig65m-kinetics.0", 512)]))  # fmt: skip
FEW = tuple(expert for expert in REFINED if expert[0] not in ("audio", "speech"))
SEEN = (ALL[0], ALL[3], ALL[6], ALL[7])
# name: experts, (words, clusters, ghosts, most), {expert: (clusters, most)}, (batch, epochs, optimiser, rate,
# decay, margin), (rule, captions of a validated video), what is kept
WORDS, GPT, FINE = ("w2v", 300), ("openai", 768), ("gpt2-xl-finetune", 1600)
THREE = {"ocr": (43, 49), "audio": (8, 29), "speech": (19, 32)}
CE = {
    "ce-msrvtt-full": (ALL, (*GPT, 28, 1, 37), THREE, MSRVTT, ("all", 1), "t2v"),
    "ce-msrvtt-1k-a": (ALL, (*GPT, 28, 1, 37), THREE, MSRVTT, ("all", 1), "last"),
    "ce-msrvtt-1k-b": (SMALL_FACE, (*WORDS, 28, 1, 37), THREE, MSRVTT, ("all", 1), "last"),
    "moee-msrvtt-full": (
        ALL, (*GPT, 50, 2, 19), {"ocr": (20, 3), "audio": (27, 17), "speech": (45, 32)},
        (*MSRVTT[:5], 0.12638433919050676), ("all", 1), "t2v"),
    "ce-msvd": (SILENT, (*GPT, 12, 0, 30), {"ocr": (75, 30)}, (16, 300, "ranger", 0.01, 5e-5, MSVD),
                ("all", 0), "t2v"),
    "ce-didemo": (
        ALL, (*GPT, 8, 0, 48), {"ocr": (13, 8), "audio": (16, 23), "speech": (55, 48)},
        (64, 30, "ranger", 0.1, 1e-3, DIDEMO), ("paragraph", 0), "t2v"),
    "ce-activitynet": (
        ALL, (*GPT, 39, 0, 49), {"ocr": (44, 6), "audio": (6, 4), "speech": (100, 29)},
        (32, 150, "ranger", 0.1, 1e-3, ACTIVITYNET), ("paragraph", 0), "t2v"),
    "ce-lsmdc": (
        SMALL_FACE, (*WORDS, 43, 0, 36), {"ocr": (30, 6), "audio": (3, 11), "speech": (5, 35)},
        (256, 15, "ranger", 0.01, 1e-3, LSMDC), ("all", 1), "t2v"),
    "ce-queryd": (SEEN, (*WORDS, 20, 1, 20), {"audio": (16, 29)}, (128, 20, "ranger", 0.01, 1e-3, 0.2),
                  ("paragraph", 0), "t2v"),
    "ce-audiocaps": (
        (("audio", 128), ("vggsound", 512)), (*WORDS, 20, 1, 20), {"audio": (16, 29), "vggsound": (16, 29)},
        (128, 20, "ranger", 0.01, 1e-3, 0.2), ("all", 1), "t2v"),
    "ce-plus-msrvtt-full": (
        REFINED, (*FINE, 28, 1, 37), {"audio": (8, 29), "speech": (19, 32)},
        (64, 100, "radam", 1e-3, 1e-5, MSRVTT[5]), ("all", 1), "t2v"),
    "ce-plus-msvd": (FEW, (*FINE, 12, 0, 30), {}, (16, 300, "radam", 1e-3, 1e-5, MSVD), ("all", 0), "t2v"),
    "tt-ce-plus-didemo": (
        REFINED, (*FINE, 8, 0, 48), {"audio": (16, 23), "speech": (55, 48)},
        (64, 30, "radam", 1e-3, 1e-5, DIDEMO), ("paragraph", 0), "t2v"),
    "tt-ce-plus-activitynet": (
        REFINED, (*FINE, 39, 0, 49), {"audio": (6, 4), "speech": (100, 29)},
        (32, 150, "radam", 1e-3, 1e-5, ACTIVITYNET), ("paragraph", 0), "t2v"),
    "tt-ce-plus-lsmdc": (
        REFINED, (*FINE, 43, 0, 36), {"audio": (3, 11), "speech": (5, 35)},
        (256, 15, "radam", 1e-3, 1e-5, LSMDC), ("all", 1), "t2v"),
}  # fmt: skip
CE |= {f"tt-{name}": CE[name] for name in ("ce-plus-msrvtt-full", "ce-plus-msvd")}


@pytest.mark.parametrize("name", CE)
def test_every_published_value_of_ce(name):
    """Experts stand in the order of their names: released gating depends on it, and so do checkpoints."""
    experts, (words, dim, clusters, ghosts, most), pools, trained, (rule, told), kept = CE[name]
    recipe = recipes.load(name)
    model, text = recipe.model, recipe.model.text
    assert [(e.name, e.dim) for e in model.experts] == sorted(experts)
    assert (recipe.data.words, text.dim, text.clusters, text.ghosts, text.max_tokens) == (
        words, dim, clusters, ghosts, most)  # fmt: skip
    assert (text.words, text.pool) == ("vectors", "vlad")
    found = {e.name: (e.clusters, e.max_tokens) for e in model.experts if e.pool == "vlad"}
    assert found == pools
    assert all(e.ghosts == 0 and (e.pool == "vlad" or e.max_tokens == 0) for e in model.experts)
    run, optimiser = recipe.run, recipe.optimiser
    steps = (optimiser.kind, optimiser.lr, optimiser.weight_decay)
    assert (run.batch, run.epochs, *steps, recipe.loss.margin) == trained
    assert (recipe.data.rule, recipe.data.limit, recipe.data.val_limit) == (rule, 0, told)
    assert (recipe.schedule.kind, recipe.schedule.gamma, recipe.schedule.every) == ("step", 0.95, 1)
    assert (recipe.loss.kind, recipe.loss.diagonal, run.select, run.steps, run.drop_last) == (
        "max-margin", False, kept, 0, False)  # fmt: skip
    assert optimiser.clip == 0
    assert recipe.data.captions == "one"
    if model.kind == "ce":
        assert (model.dim, model.g_layers, model.h_layers, model.mish, model.gating) == (
            768,
            3,
            0,
            True,
            True,
        )


@pytest.mark.parametrize("name", [name for name in recipes.names() if name.startswith("tt-")])
def test_students_have_the_published_teachers(name):
    teach = recipes.load(name).teach
    assert [teacher.removeprefix("train-full-ce-refined-text-") for teacher in teach.teachers] == [
        "w2v", "gpt2-xl", "gpt2-xl-finetuned"]  # fmt: skip
    assert (teach.kind, teach.delta, teach.weight) == ("huber", 1.0, 1.0)
    assert teach.denoise == ("denoise-less100" if "msrvtt" in name or "msvd" in name else "")


SEVEN = {"face": (512, 3, False), "ocr": (300, 7, False), "rgb": (2048, 5, True), "s3d": (1024, 1, True),
         "scene": (2208, 9, True), "speech": (300, 6, False), "vggish": (128, 2, True)}  # fmt: skip
TWO = {name: SEVEN[name] for name in ("s3d", "vggish")}
# name: experts, rows and words of each, types, positions, (batch, epochs, steps, gamma), (rule, captions)
MMT_RECIPES = {
    "mmt-msrvtt-1k-a": (SEVEN, 30, 19, 32, (32, 50, 1000, 0.95), ("all", 0)),
    "mmt-msrvtt-1k-b": (SEVEN, 30, 19, 32, (32, 50, 1000, 0.95), ("all", 1)),
    "mmt-msrvtt-full": (SEVEN, 30, 19, 32, (32, 50, 1000, 0.95), ("all", 0)),
    "mmt-lsmdc": (SEVEN | {"face": (128, 3, False)}, 30, 10, 32, (32, 50, 1000, 0.95), ("all", 0)),
    "mmt-activitynet": (TWO, 100, 10, 102, (32, 50, 1000, 0.9), ("paragraph", 0)),
    "mmt-howto100m": (TWO, 100, 19, 102, (64, 200, 10_000, 0.98), ("all", 0)),
}


@pytest.mark.parametrize("name", MMT_RECIPES)
def test_every_published_value_of_mmt(name):
    experts, most, types, positions, (batch, epochs, steps, gamma), (rule, told) = MMT_RECIPES[name]
    recipe = recipes.load(name)
    model, text, run = recipe.model, recipe.model.text, recipe.run
    assert [(e.name, (e.dim, e.type_id, e.timed)) for e in model.experts] == sorted(experts.items())
    assert {e.max_tokens for e in model.experts} | {text.max_tokens} == {most}
    assert (model.types, model.positions) == (types, positions)
    assert (model.dim, model.layers, model.heads, model.inner, model.dropout) == (512, 4, 4, 3072, 0.1)
    assert (model.encoder, model.aggregate, model.inputs) == ("mmt", "max", "ordered")
    assert (text.words, text.pool, text.frozen, text.stop_words) == ("bert", "cls", False, True)
    assert (run.batch, run.epochs, run.steps, run.drop_last, run.select) == (
        batch, epochs, steps, True, "last")  # fmt: skip
    assert (recipe.optimiser.kind, recipe.optimiser.lr, recipe.optimiser.weight_decay) == ("adam", 5e-5, 0)
    assert (recipe.loss.kind, recipe.loss.margin, recipe.loss.diagonal) == ("max-margin", 0.05, False)
    assert (recipe.schedule.kind, recipe.schedule.gamma) == ("step", gamma)
    assert (recipe.data.rule, recipe.data.val_limit) == (rule, told)


def test_what_howto100m_says_of_the_released_configuration_is_all_of_it():
    words = " ".join(recipes.load("mmt-howto100m").notes).replace(",", " ").replace(";", " ").split()
    recipe = recipes.load("mmt-howto100m", [word.rstrip(".") for word in words if "=" in word])
    assert (recipe.data.segment_words, recipe.data.window, recipe.model.positions) == (30, 30, 32)
    assert {e.max_tokens for e in recipe.model.experts} | {recipe.model.text.max_tokens} == {30}


def test_a_paragraph_is_all_of_a_videos_captions():
    """A limit counts captions before they are joined: with it, paragraphs would be cut to a sentence."""
    told = [recipes.load(name).data for name in recipes.names()]
    assert {(data.limit, data.val_limit) for data in told if data.rule == "paragraph"} == {(0, 0)}


def test_sizes_as_experts_are_added():
    sizes = {
        "scene.densenet161.0": 19_461_947,  # alone, there is nobody to work with
        "speech": 43_941_098,
        "audio": 62_453_499,
        "i3d.i3d.0": 80_963_836,
        "imagenet.senet154.0": 100_260_605,
        "imagenet.resnext101_32x48d.0": 119_557_374,
        "r2p1d.r2p1d-ig65m.0": 137_674_495,
        "ocr": 165_331_486,
        "face": 183_448_607,
    }
    names = list(sizes)
    for many, size in enumerate(sizes.values(), 1):
        gating = str(many > 1).lower()
        changes = [f"model.experts={sorted(names[:many])!r}", f"model.gating={gating}"]
        assert size_of("ce-msrvtt-full", changes) == size
    for name, size in (("ce-queryd", 57_745_690), ("ce-audiocaps", 8_903_512)):
        assert size_of(name, ["model.kind=moee"]) == size


def test_any_value_can_be_overridden():
    recipe = recipes.load(
        "ce-msvd",
        [
            "run.epochs=2",
            "loss.kind=info-nce",
            "optimiser.betas=[0.9, 0.98]",
            "model.expert.r2p1d.r2p1d-ig65m.0.dim=7",
            'model.experts=["ocr", "r2p1d.r2p1d-ig65m.0"]',
            "model.mode=released",
            "run.compile=true",
            "start.text=",
        ],
    )
    assert recipe.run.epochs == 2
    assert recipe.run.compile is True
    assert recipe.loss.kind == "info-nce"
    assert recipe.optimiser.betas == (0.9, 0.98)
    assert recipe.model.names == ("ocr", "r2p1d.r2p1d-ig65m.0")
    assert recipe.model.experts[1].dim == 7
    assert recipe.model.mode == "released"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("run.epoch=2", r"run\.epoch.*did you mean epochs"),
        ("run.epochs=many", r"run\.epochs must be a int"),
        ("loss.kind=hinge", "max-margin, info-nce, dual-softmax"),
        ("run.batch=1", "at least 2"),
        ("epochs", r"section\.key=value"),
        ("rum.epochs=3", "did you mean run"),
        ("model.base=cee", "there is no model"),
        ('model.experts=["smell"]', "smell"),
        ("model.text.pool=sum", "vlad, cls, max, mean, lstm"),
        ("optimiser.lr=-1", "above 0"),
    ],
)
def test_mistakes_name_the_next_step(override, words):
    with pytest.raises(TrainingError, match=words):
        recipes.load("ce-msvd", [override])


def test_unknown_recipes_and_files_of_ones_own(tmp_path):
    with pytest.raises(TrainingError, match="ce-msvd"):
        recipes.load("ce-mvsd")
    (tmp_path / "mine.toml").write_text('[model]\nbase = "ce"\nexperts = ["face"]\n[run]\nepochs = 4\n')
    recipe = recipes.load(tmp_path / "mine.toml")
    assert (recipe.name, recipe.run.epochs, recipe.model.names) == ("mine", 4, ("face",))
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(TrainingError, match="bad"):
        recipes.load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    "content", [b"title = '\xff'", b"x = " + b"[" * 3000, b"model = 3", b"[model]\nbase = ['ce']", b"x = 1e"]
)
def test_files_that_are_no_recipes(tmp_path, content):
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(TrainingError):
        recipes.load(path)


def test_a_recipe_that_inherits_from_itself(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(f"inherit = '{path}'")
    with pytest.raises(TrainingError, match="inherits"):
        recipes.load(path)
