"""Loaded frames on the device: pinned memory, copied beside the computation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from wordreel.lab.training.video.decode_frames import FrameSpec
from wordreel.lab.training.video.loader import FrameLoader, LoadedFrames
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.types import Int64
from wordreel.util.cores import cores

MARGIN = 9 / 8  # frames that are cropped at random are decoded this much larger


class DeviceLoader:
    """`load` gives `frames [b, n, size, size, 3]` uint8 and `counts [b]` on the device, in order.

    Args:
        paths: The files.
        recipe: Says which frames are read.
        batch: The largest batch of this process.
        device: Where frames go.
        augmented: Whether random parts will be cut out of the frames.
        processes: How many loaders share the machine's cores and memory.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        recipe: VideoRecipe,
        batch: int,
        device: torch.device,
        augmented: bool = False,
        processes: int = 1,
    ) -> None:
        frames, size = recipe.frames, recipe.model.backbone.vision.size
        spec = FrameSpec(
            round(size * MARGIN) if augmented else size,
            recipe.model.max_frames,
            recipe.model.frame_rate,
            frames.position,
        )
        self._loader = FrameLoader(
            paths,
            spec,
            batch,
            workers=frames.workers or max(1, cores() // processes),
            ahead=frames.ahead,
            cache_bytes=int(frames.cache_gib * 2**30 / processes),
        )
        self._device, self._copies = device, None
        if device.type == "cuda":
            self._copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self._memory = torch.from_numpy(self._loader.memory.bytes)
            layout = self._loader.memory.layout
            torch.cuda.cudart().cudaHostRegister(  # type: ignore[no-untyped-call]
                self._memory.data_ptr() + layout.slots_at, layout.slots * layout.slot_bytes, 0
            )

    @property
    def failed(self) -> dict[int, str]:
        """Files that could not be read, by number, with the reason."""
        return self._loader.failed

    @property
    def most(self) -> int:
        """The most frames of any file: 1 if all are pictures."""
        return self._loader.memory.layout.most

    def load(self, batches: Iterable[Int64]) -> Iterator[tuple[Tensor, Tensor]]:
        for loaded in self._loader.load(batches):
            yield self._to_device(loaded)

    def _to_device(self, loaded: LoadedFrames) -> tuple[Tensor, Tensor]:
        frames, counts = torch.from_numpy(loaded.pixels), torch.from_numpy(loaded.counts)
        if self._copies is None:
            return frames.clone(), counts
        current = torch.cuda.current_stream(self._device)
        with torch.cuda.stream(self._copies):
            frames = frames.to(self._device, non_blocking=True)
            counts = counts.to(self._device, non_blocking=True)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record(self._copies)
        loaded.wait = copied.synchronize
        current.wait_event(copied)
        frames.record_stream(current)
        counts.record_stream(current)
        return frames, counts

    def close(self) -> None:
        """End the workers and give the memory back."""
        if self._copies is not None:
            torch.cuda.synchronize(self._device)
            at = self._memory.data_ptr() + self._loader.memory.layout.slots_at
            torch.cuda.cudart().cudaHostUnregister(at)  # type: ignore[no-untyped-call]
        self._loader.close()
