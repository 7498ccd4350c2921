"""CLIP-like models by name: where they are published, how large they are, and how fast.

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


RECOMMENDED = "clip-vit-b-32"
APPLE = "Apple AMLR, research only"

_TABLE = (
    # OpenAI (Radford et al. 2021)
    NamedBackbone(
        "clip-vit-b-32", "CLIP ViT-B/32",
        "openai/clip-vit-base-patch32", 605, "MIT", "fast",
        revision="3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268",
    ),
    NamedBackbone(
        "clip-vit-b-16", "CLIP ViT-B/16",
        "openai/clip-vit-base-patch16", 599, "MIT", "medium",
        revision="57c216476eefef5ab752ec549e440a49ae4ae5f3",
    ),
    NamedBackbone(
        "clip-vit-l-14", "CLIP ViT-L/14",
        "openai/clip-vit-large-patch14", 1711, "MIT", "slow",
        revision="32bd64288804d66eefd0ccbe215aa642df71cc41",
    ),
    NamedBackbone(
        "clip-vit-l-14-336", "CLIP ViT-L/14 at 336 pixels",
        "openai/clip-vit-large-patch14-336", 1712, "MIT", "slow",
        revision="ce19dc912ca5cd21c8a653c79e251e808ccabcd1",
    ),
    # open_clip on LAION-2B (Cherti et al. 2023) and DataComp-1B (Gadre et al. 2023)
    NamedBackbone(
        "openclip-vit-b-32-laion2b", "open_clip ViT-B/32, LAION-2B",
        "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", 605, "MIT", "fast",
        revision="1a25a446712ba5ee05982a381eed697ef9b435cf",
    ),
    NamedBackbone(
        "openclip-vit-b-16-laion2b", "open_clip ViT-B/16, LAION-2B",
        "laion/CLIP-ViT-B-16-laion2B-s34B-b88K", 599, "MIT", "medium",
    ),
    NamedBackbone(
        "openclip-vit-l-14-laion2b", "open_clip ViT-L/14, LAION-2B",
        "laion/CLIP-ViT-L-14-laion2B-s32B-b82K", 1711, "MIT", "slow",
    ),
    NamedBackbone(
        "openclip-vit-h-14-laion2b", "open_clip ViT-H/14, LAION-2B",
        "laion/CLIP-ViT-H-14-laion2B-s32B-b79K", 3945, "MIT", "slow",
        revision="1c2b8495b28150b8a4922ee1c8edee224c284c0c",
    ),
    NamedBackbone(
        "openclip-vit-b-32-datacomp", "open_clip ViT-B/32, DataComp-1B",
        "laion/CLIP-ViT-B-32-DataComp.XL-s13B-b90K", 605, "MIT", "fast",
    ),
    NamedBackbone(
        "openclip-vit-b-16-datacomp", "open_clip ViT-B/16, DataComp-1B",
        "laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K", 599, "MIT", "medium",
    ),
    NamedBackbone(
        "openclip-vit-l-14-datacomp", "open_clip ViT-L/14, DataComp-1B",
        "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K", 1711, "MIT", "slow",
    ),
    # SigLIP (Zhai et al. 2023) and SigLIP 2 (Tschannen et al. 2025), which reads many languages
    NamedBackbone(
        "siglip-vit-b-16-224", "SigLIP ViT-B/16",
        "google/siglip-base-patch16-224", 813, "Apache-2.0", "medium",
        revision="7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
    ),
    NamedBackbone(
        "siglip-vit-b-16-256", "SigLIP ViT-B/16 at 256 pixels",
        "google/siglip-base-patch16-256", 813, "Apache-2.0", "medium",
        revision="b078df89e446d623010d890864d4207fe6399f61",
    ),
    NamedBackbone(
        "siglip-vit-l-16-256", "SigLIP ViT-L/16 at 256 pixels",
        "google/siglip-large-patch16-256", 2609, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip-so400m-14-384", "SigLIP SO400M/14 at 384 pixels",
        "google/siglip-so400m-patch14-384", 3513, "Apache-2.0", "slow",
        revision="9fdffc58afc957d1a03a25b10dba0329ab15c2a3",
    ),
    NamedBackbone(
        "siglip2-vit-b-32-256", "SigLIP 2 ViT-B/32 at 256 pixels",
        "google/siglip2-base-patch32-256", 1545, "Apache-2.0", "fast",
        revision="94dffa8cb1179de3e03f091dbc3917e5d5a9ae84",
    ),
    NamedBackbone(
        "siglip2-vit-b-16-224", "SigLIP 2 ViT-B/16",
        "google/siglip2-base-patch16-224", 1539, "Apache-2.0", "medium",
        revision="75de2d55ec2d0b4efc50b3e9ad70dba96a7b2fa2",
    ),
    NamedBackbone(
        "siglip2-vit-l-16-256", "SigLIP 2 ViT-L/16 at 256 pixels",
        "google/siglip2-large-patch16-256", 3563, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip2-so400m-14-224", "SigLIP 2 SO400M/14",
        "google/siglip2-so400m-patch14-224", 4579, "Apache-2.0", "slow",
    ),
    NamedBackbone(
        "siglip2-so400m-14-384", "SigLIP 2 SO400M/14 at 384 pixels",
        "google/siglip2-so400m-patch14-384", 4580, "Apache-2.0", "slow",
    ),
    # MobileCLIP (Vasu et al. 2024) and MobileCLIP2 (Faghri et al. 2025), made for small machines
    NamedBackbone(
        "mobileclip-s0", "MobileCLIP-S0",
        "apple/MobileCLIP-S0", 216, APPLE, "fast",
    ),
    NamedBackbone(
        "mobileclip-s1", "MobileCLIP-S1",
        "apple/MobileCLIP-S1-OpenCLIP", 341, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip-s2", "MobileCLIP-S2",
        "apple/MobileCLIP-S2-OpenCLIP", 398, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip-b-lt", "MobileCLIP-B, trained longer",
        "apple/MobileCLIP-B-LT-OpenCLIP", 600, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip2-s0", "MobileCLIP2-S0",
        "timm/MobileCLIP2-S0-OpenCLIP", 300, APPLE, "fast",
    ),
    NamedBackbone(
        "mobileclip2-s2", "MobileCLIP2-S2",
        "timm/MobileCLIP2-S2-OpenCLIP", 398, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip2-b", "MobileCLIP2-B",
        "timm/MobileCLIP2-B-OpenCLIP", 600, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip2-s3", "MobileCLIP2-S3",
        "timm/MobileCLIP2-S3-OpenCLIP", 996, APPLE, "medium",
    ),
    NamedBackbone(
        "mobileclip2-s4", "MobileCLIP2-S4",
        "timm/MobileCLIP2-S4-OpenCLIP", 1783, APPLE, "slow",
    ),
    # Perception Encoder (Bolya et al. 2025)
    NamedBackbone(
        "pe-core-b-16-224", "PE-Core B/16",
        "facebook/PE-Core-B16-224", 1792, "Apache-2.0", "medium",
    ),
    NamedBackbone(
        "pe-core-l-14-336", "PE-Core L/14 at 336 pixels",
        "facebook/PE-Core-L14-336", 2685, "Apache-2.0", "slow",
    ),
)  # fmt: skip

NAMED: Mapping[str, NamedBackbone] = {entry.name: entry for entry in _TABLE}
