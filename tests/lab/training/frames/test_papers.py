"""CLIP2Video and TS2-Net through the trainer: their losses, and a step that changes every part."""

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.frames.test_frame_batches import opened, world  # noqa: E402, F401

from wordreel.lab.training.distributed import World  # noqa: E402
from wordreel.lab.training.frames.frame_batches import normalise  # noqa: E402
from wordreel.lab.training.losses import dual_softmax, info_nce  # noqa: E402
from wordreel.lab.training.session import Session  # noqa: E402

MODELS = {
    "clip2video-msvd": (
        ["model.centres=3", "loss.kind=dual-softmax"],
        partial(dual_softmax, temperature=1.0),
    ),
    "ts2net-msvd": (["model.samples=20", "model.patches=2"], partial(info_nce, temperature=1.0)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_the_published_loss_changes_every_part(world, name):  # noqa: F811
    changes, loss = MODELS[name]
    recipe, data = opened(
        world, name, "model.layers=1", "start.frozen_layers=-1", "optimiser.lr=1e-2", *changes
    )
    session = Session(recipe, data, torch.device("cpu"), World())
    try:
        module, batch = session.module, next(session.batches(0, 0))
        before = {key: value.clone() for key, value in module.state_dict().items()}
        torch.manual_seed(7)
        found = session.source.loss(batch)
        torch.manual_seed(7)
        frames = normalise(batch.frames, batch.counts, recipe.model.backbone.transform)
        parts = module.training_logits(module.encode_captions(batch.captions), module.encode_videos(frames))
        assert [weight for weight, _ in parts] == ([0.5, 0.5] if "clip2video" in name else [1.0])
        torch.testing.assert_close(found, sum(weight * loss(logits) for weight, logits in parts))
        session.step(batch, 0, 1.0)
        heads = {key.partition(".")[0] for key in before}
        changed = {
            key.partition(".")[0]
            for key, value in module.state_dict().items()
            if not torch.equal(value, before[key])
        }
        assert changed == heads
    finally:
        session.close()
