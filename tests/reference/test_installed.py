"""An installed backbone, from pixels and words to embeddings, against open_clip's whole pipeline."""

import numpy as np
import pytest
from tests.backbones.apple_layout import apple_state
from tests.reference.test_mobileclip import shake
from tests.reference.test_transforms import picture

from wordreel.backbones.installed import install, open_backbone, plan
from wordreel.runtime.store import WeightStore

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
open_clip = pytest.importorskip("open_clip")
image_module = pytest.importorskip("PIL.Image")

TEXTS = ["a dog runs on the beach", "Two CATS & a “mat”", ""]


def test_apples_file_of_mobileclip_s1(tmp_path):
    torch.manual_seed(0)
    model = open_clip.create_model("MobileCLIP-S1").eval()
    shake(model)
    model.visual.trunk.head.fc.bias.data.zero_()  # Apple's head has none
    state = apple_state({key: value.numpy() for key, value in model.state_dict().items()})
    torch.save({key: torch.from_numpy(value) for key, value in state.items()}, tmp_path / "mobileclip_s1.pt")
    store = WeightStore(tmp_path / "store")
    backbone = open_backbone(store, install(store, plan(store, str(tmp_path / "mobileclip_s1.pt"))))

    preprocess = open_clip.image_transform(
        256, is_train=False, mean=(0, 0, 0), std=(1, 1, 1), interpolation="bilinear", resize_mode="shortest"
    )
    images = np.stack([picture(360, 640), 255 - picture(360, 640)])
    with torch.no_grad():
        pixels = torch.stack([preprocess(image_module.fromarray(image)) for image in images])
        seen = model.encode_image(pixels).numpy()
        said = model.encode_text(open_clip.get_tokenizer("MobileCLIP-S1")(TEXTS)).numpy()
    for ours, theirs in ((backbone.images(images), seen), (backbone.texts(TEXTS), said)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
