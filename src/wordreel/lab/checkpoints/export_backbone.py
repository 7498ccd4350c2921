"""Write joint picture-text models of PyTorch as the ONNX files that search runs (`backbones.layout`).

CLIP and what is fine-tuned from it run on the towers of `lab.models.clip`; other models are loaded by the
packages they come from, `transformers` and open_clip. PyTorch's exporter writes the graphs.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.backbones.config import ImageTransform
from wordreel.backbones.layout import CONFIG, HEAD, HEAD_CONFIG, TOKENIZER, read_json
from wordreel.backbones.tokenizer import CLIP_VOCABULARY
from wordreel.errors import NextStep, UnsafePickle, WeightsError, WordreelError
from wordreel.lab.checkpoints.clip import init_from_clip, read_clip
from wordreel.lab.checkpoints.video_text import module_from
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import load_video_text, read_facts
from wordreel.lab.models.clip.config import KINDS, Clip4ClipConfig, TS2NetConfig, VideoTextConfig
from wordreel.lab.models.clip.video_text import CaptionBatch, VideoTextModel
from wordreel.models.model_store import find_checkpoint
from wordreel.runtime.store import WeightStore
from wordreel.runtime.torch_file import is_torchscript, read_state_dict, unwrapped

OPEN_CLIP_CONFIG = "open_clip_config.json"
TOWERS = ("clip.visual.", "visual.", "vision_model.")  # before the names of an image tower's weights
OPSET = 17
USABLE = NextStep("use a CLIP2Video, or a CLIP4Clip with the mean, LSTM or transformer head and 2-D patches")


def is_clip(path: Path) -> bool:
    """Return whether a file or folder holds a joint picture-text model, or one on CLIP's towers."""
    if path.is_dir():
        if _trained(path) is not None or (path / OPEN_CLIP_CONFIG).is_file():
            return True
        config = path / CONFIG
        return config.is_file() and "vision_config" in read_json(config)
    if not path.is_file():
        return False
    try:
        return is_torchscript(path) or any(key.startswith(TOWERS) for key in unwrapped(read_state_dict(path)))
    except (UnsafePickle, WeightsError):
        return False


def export_backbone(path: Path, folder: Path) -> None:
    """Write a model as ONNX files into an empty folder.

    Args:
        path: A CLIP (a folder for `transformers`, a state dict, OpenAI's archive); another model for
            `transformers` or open_clip; a CLIP4Clip or CLIP2Video, published or trained here.
        folder: Where the files go.

    Raises:
        WeightsError: It is none of these, or needs a package that is not installed.
    """
    if path.is_dir() and (trained := _trained(path)) is not None:
        _export_fine_tuned(load_video_text(trained)[0], trained, folder)
    elif path.is_dir() and (path / OPEN_CLIP_CONFIG).is_file():
        _export_open_clip(path, folder)
    elif path.is_dir() and read_json(path / CONFIG).get("model_type") != "clip":
        _export_transformers(path, folder)
    elif path.is_file() and not is_torchscript(path) and _is_fine_tuned(state := read_state_dict(path)):
        _export_fine_tuned(module_from(path.name, state), path.parent, folder)
    else:
        clip = read_clip(path)[0]
        model = build(Clip4ClipConfig(clip, max_words=clip.text.length))
        init_from_clip(model, path)
        _export_clip(model, path if path.is_dir() else path.parent, folder)


class _Graph(nn.Module):
    """A function of a model, as a module that the exporter can trace."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return one tensor, which models of transformers may have as `pooler_output`."""
        output = self.call(self.model, *inputs)
        return output if isinstance(output, Tensor) else output.pooler_output


def _joined(vectors: Sequence[Tensor], config: VideoTextConfig) -> Tensor:
    """Two vectors end to end, so that one inner product is the mixture of their cosines; one as it is."""
    if len(vectors) == 1:
        return vectors[0]
    share = float(getattr(config, "global_weight", 0.5))
    return torch.cat([share**0.5 * vectors[0], (1 - share) ** 0.5 * vectors[1]], dim=-1)


def _check_storable(config: VideoTextConfig) -> None:
    """Refuse a model whose embedding of a video, or of a frame, depends on anything else."""
    reason = ""
    if isinstance(config, TS2NetConfig):
        reason = (
            "a TS2-Net weighs the frames of a video by the query and shifts tokens between them: there is no "
            "embedding of a frame or of a video that could be stored"
        )
    elif isinstance(config, Clip4ClipConfig) and config.head == "tight":
        reason = (
            "CLIP4Clip's tight head reads every query together with every video: there is no embedding of a "
            "video that could be stored"
        )
    elif isinstance(config, Clip4ClipConfig) and config.patch == "3d":
        reason = (
            "CLIP4Clip's 3-D patches read neighbouring frames together: there is no embedding of a single "
            "frame that could be stored"
        )
    if reason:
        raise WeightsError(reason, USABLE)


def _export_fine_tuned(model: VideoTextModel, source: Path, folder: Path) -> None:
    config = model.config
    _check_storable(config)
    model.config = replace(config, mode="paper")  # a clip's embedding depends on no other's
    _export_clip(model, source, folder)
    inputs = {"frames": torch.randn(2, 3, config.backbone.dim), "mask": torch.ones(2, 3, dtype=torch.bool)}
    head = _Graph(model, lambda m, frames, mask: _joined(m.encode_frames(frames, mask), m.config))
    _write(head, inputs, "vectors", folder / HEAD, 2)
    _write_json(folder / HEAD_CONFIG, {"frames": config.max_frames, "rate": config.frame_rate})


def _export_clip(model: VideoTextModel, source: Path, folder: Path) -> None:
    """Write the towers, and the tokenizer in the source's folder or CLIP's own."""
    clip = model.config.backbone
    images = _Graph(model, lambda m, pixels: m.clip.frames(pixels[:, None])[:, 0])
    texts = _Graph(
        model, lambda m, ids, mask: _joined(m.encode_captions(CaptionBatch(ids, mask.bool())), m.config)
    )
    pixels = {"pixel_values": torch.randn(2, 3, clip.vision.size, clip.vision.size)}
    _write(images, pixels, "image_embeds", folder / "vision_model.onnx", 1)
    ids = torch.ones(2, 5, dtype=torch.int64)
    ids[:, -1] = clip.text.vocabulary - 1
    tokens = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    _write(texts, tokens, "text_embeds", folder / "text_model.onnx", 2)
    own = source / TOKENIZER
    shutil.copyfile(own if own.is_file() else WeightStore().file(CLIP_VOCABULARY), folder / TOKENIZER)
    _write_json(
        folder / CONFIG, {"model_type": "clip", "text_config": {"max_position_embeddings": clip.text.length}}
    )
    _write_json(folder / "preprocessor_config.json", _preprocessor(clip.transform))


def _export_transformers(path: Path, folder: Path) -> None:
    transformers = _package("transformers", "transformers", path)
    model = transformers.AutoModel.from_pretrained(str(path), local_files_only=True).eval()
    size = model.config.vision_config.image_size
    length = model.config.text_config.max_position_embeddings
    images = _Graph(model, lambda m, pixels: m.get_image_features(pixels))
    texts = _Graph(model, lambda m, ids: m.get_text_features(ids))
    _write_towers(images, texts, size, length, folder / "vision_model.onnx", folder / "text_model.onnx")
    transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True).save_pretrained(str(folder))
    transformers.AutoImageProcessor.from_pretrained(str(path), local_files_only=True).save_pretrained(
        str(folder)
    )
    shutil.copyfile(path / CONFIG, folder / CONFIG)


def _export_open_clip(path: Path, folder: Path) -> None:
    open_clip = _package("open_clip", "open-clip-torch", path)
    name = f"local-dir:{path.resolve()}"
    model = open_clip.create_model(name).eval()
    described = read_json(path / OPEN_CLIP_CONFIG).get("model_cfg", {})
    transform = open_clip.get_model_preprocess_cfg(model)
    size = transform["size"][0] if isinstance(transform["size"], Sequence) else transform["size"]
    length = described.get("text_cfg", {}).get("context_length", 77)
    visual, textual = folder / "visual", folder / "textual"
    visual.mkdir()
    textual.mkdir()
    images = _Graph(model, lambda m, pixels: m.encode_image(pixels))
    texts = _Graph(model, lambda m, ids: m.encode_text(ids))
    _write_towers(images, texts, size, length, visual / "model.onnx", textual / "model.onnx")
    tokenizer = getattr(open_clip.get_tokenizer(name), "tokenizer", None)  # of transformers, or CLIP's own
    if tokenizer is not None:
        tokenizer.save_pretrained(str(textual))
    else:
        shutil.copyfile(WeightStore().file(CLIP_VOCABULARY), textual / TOKENIZER)
    _write_json(folder / CONFIG, described)
    _write_json(visual / "preprocess_cfg.json", transform)


def _write_towers(
    images: _Graph, texts: _Graph, size: int, length: int, image_file: Path, text_file: Path
) -> None:
    """Write both encoders of another package's model."""
    pixels, ids = torch.randn(2, 3, size, size), torch.ones(2, length, dtype=torch.int64)
    _write(images, {"pixel_values": pixels}, "image_embeds", image_file, 1)
    _write(texts, {"input_ids": ids}, "text_embeds", text_file, 1)


def _write(module: nn.Module, inputs: Mapping[str, Tensor], output: str, path: Path, free: int) -> None:
    """Write a graph whose inputs may differ in their first `free` axes."""
    axes = {name: {axis: f"axis{axis}" for axis in range(free)} for name in inputs}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter, about what it makes constant
        torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes={**axes, output: {0: "axis0"}},
            opset_version=OPSET,
            dynamo=False,
        )


def _package(name: str, package: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise WeightsError(
            f"{path} is a model for {name}, which converts it and is not installed",
            NextStep(f"run: pip install {package}, or take a repository with ONNX files"),
        ) from None


def _trained(path: Path) -> Path | None:
    """Return the folder of a model trained here on CLIP's towers; None if it is none."""
    folder = find_checkpoint(path)
    try:
        return folder if read_facts(folder)["config"].get("kind") in KINDS else None
    except WordreelError:
        return None


def _is_fine_tuned(state: Mapping[str, Any]) -> bool:
    return any(key.startswith("clip.visual.") for key in unwrapped(state))


def _preprocessor(transform: ImageTransform) -> dict[str, Any]:
    return {
        "size": {"shortest_edge": transform.size},
        "crop_size": {"height": transform.size, "width": transform.size},
        "do_center_crop": True,
        "image_mean": list(transform.mean),
        "image_std": list(transform.std),
        "resample": 3,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
