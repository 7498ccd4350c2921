"""CLIP-like models by name: where their ONNX files are published, how large they are, and how fast.

To add one, append a `NamedBackbone` whose hub id you have verified. An empty `revision` is the newest commit;
the commit that was downloaded is recorded either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Speed = Literal["fast", "medium", "slow"]


@dataclass(frozen=True)
class NamedBackbone:
    """One model. `megabytes` are to download; `speed` is that of the image tower on a CPU: with two cores,
    fast ones see more than ten frames a second, slow ones less than two."""

    name: str
    title: str
    hub: str
    megabytes: float
    licence: str
    speed: Speed
    revision: str = ""


APPLE = "Apple AMLR, research only"

_TABLE = (
    # OpenAI (Radford et al. 2021), exported for transformers.js
    NamedBackbone("clip-vit-b-32", "CLIP ViT-B/32", "Xenova/clip-vit-base-patch32", 605, "MIT", "fast"),
    NamedBackbone("clip-vit-b-16", "CLIP ViT-B/16", "Xenova/clip-vit-base-patch16", 599, "MIT", "medium"),
    NamedBackbone("clip-vit-l-14", "CLIP ViT-L/14", "Xenova/clip-vit-large-patch14", 1711, "MIT", "slow"),
    NamedBackbone(
        "clip-vit-l-14-336", "CLIP ViT-L/14 at 336 pixels",
        "Xenova/clip-vit-large-patch14-336", 1712, "MIT", "slow",
    ),
    # open_clip on LAION-2B (Cherti et al. 2023), exported by Immich
    NamedBackbone(
        "openclip-vit-b-32-laion2b", "open_clip ViT-B/32, LAION-2B",
        "immich-app/ViT-B-32__laion2b-s34b-b79k", 605, "MIT", "fast",
    ),
    NamedBackbone(
        "openclip-vit-l-14-laion2b", "open_clip ViT-L/14, LAION-2B",
        "immich-app/ViT-L-14__laion2b-s32b-b82k", 1711, "MIT", "slow",
    ),
    NamedBackbone(
        "openclip-vit-h-14-laion2b", "open_clip ViT-H/14, LAION-2B",
        "immich-app/ViT-H-14__laion2b-s32b-b79k", 3945, "MIT", "slow",
    ),
    # SigLIP (Zhai et al. 2023) and SigLIP 2 (Tschannen et al. 2025), which reads many languages
    NamedBackbone(
        "siglip-vit-b-16-224", "SigLIP ViT-B/16",
        "Xenova/siglip-base-patch16-224", 813, "Apache-2.0", "medium",
    ),
    NamedBackbone(
        "siglip-vit-b-16-256", "SigLIP ViT-B/16 at 256 pixels",
        "immich-app/ViT-B-16-SigLIP-256__webli", 813, "Apache-2.0", "medium",
    ),
    NamedBackbone(
        "siglip-vit-l-16-256", "SigLIP ViT-L/16 at 256 pixels",
        "immich-app/ViT-L-16-SigLIP-256__webli", 2609, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip-so400m-14-384", "SigLIP SO400M/14 at 384 pixels",
        "immich-app/ViT-SO400M-14-SigLIP-384__webli", 3513, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip2-vit-b-32-256", "SigLIP 2 ViT-B/32 at 256 pixels",
        "immich-app/ViT-B-32-SigLIP2-256__webli", 1545, "Apache-2.0", "fast",
    ),
    NamedBackbone(
        "siglip2-vit-b-16-224", "SigLIP 2 ViT-B/16",
        "immich-app/ViT-B-16-SigLIP2__webli", 1539, "Apache-2.0", "medium",
    ),
    NamedBackbone(
        "siglip2-vit-l-16-256", "SigLIP 2 ViT-L/16 at 256 pixels",
        "immich-app/ViT-L-16-SigLIP2-256__webli", 3563, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip2-so400m-14-224", "SigLIP 2 SO400M/14",
        "immich-app/ViT-SO400M-14-SigLIP2__webli", 4579, "Apache-2.0", "slow",
    ),
    # MobileCLIP (Vasu et al. 2024), made for small machines, exported for transformers.js
    NamedBackbone("mobileclip-s0", "MobileCLIP-S0", "Xenova/mobileclip_s0", 216, APPLE, "fast"),
    NamedBackbone("mobileclip-s1", "MobileCLIP-S1", "Xenova/mobileclip_s1", 341, APPLE, "medium"),
    NamedBackbone("mobileclip-s2", "MobileCLIP-S2", "Xenova/mobileclip_s2", 398, APPLE, "medium"),
    NamedBackbone(
        "mobileclip-b-lt", "MobileCLIP-B, trained longer",
        "Xenova/mobileclip_blt", 600, APPLE, "medium",
    ),
)  # fmt: skip

NAMED: Mapping[str, NamedBackbone] = {entry.name: entry for entry in _TABLE}
