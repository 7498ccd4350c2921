"""Import torchvision beside a torch that its compiled operators were not built for.

Only its picture transforms are needed, and they are plain Python; but on import torchvision registers two
operators that its compiled part would have defined.
"""

import importlib.util

OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def import_torchvision():
    """Import torchvision where it is installed, with its compiled operators or without them."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        import torchvision
    except RuntimeError:
        import torch

        library = torch.library.Library("torchvision", "DEF")
        for operator in OPERATORS:
            library.define(operator + SCHEMA)
        import torchvision

        torchvision.library = library  # a library that is freed takes its operators with it
