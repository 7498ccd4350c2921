"""Embed videos and captions with a video-text model, each once, and compare all with all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from wordreel.lab.models.clip.video_text import Encoded, FrameBatch, VideoTextModel
from wordreel.lab.training.precision import TrainingPrecision
from wordreel.lab.training.video.captions import CaptionIds
from wordreel.lab.training.video.device_loader import DeviceLoader
from wordreel.lab.training.video.pixels import normalise
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.lab.training.video.video_pairs import VideoPairs
from wordreel.types import Float32

BATCH = {"cpu": 16, "cuda": 64}  # videos
CAPTIONS = 512
ROWS = 256  # captions that are compared with all videos at a time


class VideoEncoder:
    """Keeps decoded videos within the recipe's cache, so that the same videos are decoded once."""

    def __init__(
        self,
        recipe: VideoRecipe,
        device: torch.device,
        precision: TrainingPrecision,
        tokenizer: str,
    ) -> None:
        self._recipe, self._device, self._precision = recipe, device, precision
        self._tokenizer = tokenizer
        self._loaders: dict[tuple[Path, ...], DeviceLoader] = {}
        self._captions: dict[int, CaptionIds] = {}

    def close(self) -> None:
        for loader in self._loaders.values():
            loader.close()

    @torch.inference_mode()
    def videos(self, module: VideoTextModel, videos: VideoPairs) -> Encoded:
        """What the module encodes of every video, in float32."""
        batch = BATCH[self._device.type]
        loader = self._loaders.get(videos.paths)
        if loader is None:
            size = min(batch, len(videos))
            loader = DeviceLoader(videos.paths, self._recipe, size, self._device)
            self._loaders[videos.paths] = loader
        numbers = np.arange(len(videos))
        parts: list[Encoded] = []
        for frames, counts in loader.load([numbers[n : n + batch] for n in range(0, len(videos), batch)]):
            one = normalise(frames, counts, self._recipe.model.backbone.transform)
            missing = loader.most - one.mask.shape[1]
            if missing:  # a batch of pictures among videos
                pixels = torch.nn.functional.pad(one.pixels, (0, 0, 0, 0, 0, 0, 0, missing))
                one = FrameBatch(pixels, torch.nn.functional.pad(one.mask, (0, missing)))
            with self._precision.autocast():
                parts.append(module.encode_videos(one))
        return _joined(parts)

    @torch.inference_mode()
    def captions(self, module: VideoTextModel, captions: CaptionIds) -> Encoded:
        """What the module encodes of every caption, in float32."""
        parts: list[Encoded] = []
        numbers = np.arange(len(captions))
        longest = int(captions.lengths.max())
        for start in range(0, len(captions), CAPTIONS):
            batch = captions.batch(numbers[start : start + CAPTIONS], self._device, longest)
            with self._precision.autocast():
                parts.append(module.encode_captions(batch))
        return _joined(parts)

    @torch.inference_mode()
    def logits(self, module: VideoTextModel, captions: Encoded, videos: Encoded) -> Float32:
        """`[captions, videos]` on the host."""
        rows = []
        for start in range(0, len(captions[0]), ROWS):
            some = tuple(part[start : start + ROWS] for part in captions)
            rows.append(module.logits(some, videos).float().cpu().numpy())
        return np.concatenate(rows)

    def similarities(self, module: VideoTextModel, pairs: VideoPairs) -> Float32:
        """Logits of all captions and all videos of pairs; the module goes back to the mode it was in."""
        was = module.training
        module.eval()
        try:
            ids = self._captions.get(id(pairs))
            if ids is None:
                ids = CaptionIds.of(pairs.pairs, self._recipe.model, self._tokenizer)
                self._captions[id(pairs)] = ids
            return self.logits(module, self.captions(module, ids), self.videos(module, pairs))
        finally:
            module.train(was)


def _joined(parts: list[Encoded]) -> Encoded:
    def whole(column: tuple[torch.Tensor, ...]) -> torch.Tensor:
        joined = torch.cat(column)
        return joined.float() if joined.is_floating_point() else joined

    return tuple(whole(column) for column in zip(*parts, strict=True))
