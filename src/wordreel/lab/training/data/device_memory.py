"""Whether a dataset fits into the memory of a device."""

from __future__ import annotations

import torch

FREE_SHARE = 0.6  # of the device's free memory may be filled with features


def device_for(size: int, device: torch.device) -> torch.device:
    """The device where that many bytes fit, else the host's memory."""
    if device.type != "cuda":
        return torch.device("cpu")
    free, _ = torch.cuda.mem_get_info(device)
    return device if size < FREE_SHARE * free else torch.device("cpu")
