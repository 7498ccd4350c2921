"""A folder of tiny videos with captions, and a CLIP to start from."""

import json

import numpy as np
from tests.media import make
from tests.tiny_backbone import write_clip

COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200), "green": (30, 180, 40), "white": (240, 240, 240),
           "black": (5, 5, 5), "grey": (120, 120, 120)}  # fmt: skip


def write_videos(folder, seconds=3, rate=4):
    """`videos/COLOUR.mp4` of one colour each, and `captions.json` with two captions of each."""
    (folder / "videos").mkdir(parents=True)
    for name, colour in COLOURS.items():
        images = [np.full((48, 64, 3), colour, np.uint8) + np.uint8(n) for n in range(seconds * rate)]
        make.video(folder / "videos" / f"{name}.mp4", rate=rate, images=images, sound=False)
    told = {name: [f"the {name} cat", f"a {name} dog"] for name in COLOURS}
    (folder / "captions.json").write_text(json.dumps(told))
    return folder


def tiny_backbone(folder):
    return write_clip(folder)
