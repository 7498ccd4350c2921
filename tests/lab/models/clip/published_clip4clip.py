"""States in the layout of the published CLIP4Clip checkpoints, key by key, with random weights."""

from __future__ import annotations

import numpy as np

VISION, TEXT, PATCH, GRID, DEPTH, VOCABULARY, LENGTH, LAYERS = 64, 128, 4, 2, 2, 60, 20, 2
VISION_HEADS, TEXT_HEADS = VISION // 64, TEXT // 64  # as the published code has them


def blocks(at: str, width: int, depth: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for number in range(depth):
        one = f"{at}.resblocks.{number}"
        shapes[f"{one}.attn.in_proj_weight"] = (3 * width, width)
        shapes[f"{one}.attn.in_proj_bias"] = (3 * width,)
        shapes[f"{one}.attn.out_proj.weight"] = (width, width)
        shapes[f"{one}.attn.out_proj.bias"] = (width,)
        shapes[f"{one}.ln_1.weight"] = shapes[f"{one}.ln_1.bias"] = (width,)
        shapes[f"{one}.mlp.c_fc.weight"] = (4 * width, width)
        shapes[f"{one}.mlp.c_fc.bias"] = (4 * width,)
        shapes[f"{one}.mlp.c_proj.weight"] = (width, 4 * width)
        shapes[f"{one}.mlp.c_proj.bias"] = (width,)
        shapes[f"{one}.ln_2.weight"] = shapes[f"{one}.ln_2.bias"] = (width,)
    return shapes


def shapes(header: str, patch: str = "2d") -> dict[str, tuple[int, ...]]:
    """`header` is the published name of the head: meanP, seqLSTM, seqTransf or tightTransf."""
    known: dict[str, tuple[int, ...]] = {
        "clip.positional_embedding": (LENGTH, TEXT),
        "clip.text_projection": (TEXT, TEXT),
        "clip.logit_scale": (),
        "clip.visual.class_embedding": (VISION,),
        "clip.visual.positional_embedding": (GRID**2 + 1, VISION),
        "clip.visual.proj": (VISION, TEXT),
        "clip.visual.conv1.weight": (VISION, 3, PATCH, PATCH),
        "clip.visual.ln_pre.weight": (VISION,),
        "clip.visual.ln_pre.bias": (VISION,),
        **blocks("clip.visual.transformer", VISION, DEPTH),
        "clip.visual.ln_post.weight": (VISION,),
        "clip.visual.ln_post.bias": (VISION,),
        **blocks("clip.transformer", TEXT, DEPTH),
        "clip.token_embedding.weight": (VOCABULARY, TEXT),
        "clip.ln_final.weight": (TEXT,),
        "clip.ln_final.bias": (TEXT,),
    }
    if patch == "3d":
        known["clip.visual.conv2.weight"] = (VISION, 3, 3, PATCH, PATCH)
    if header in ("seqLSTM", "seqTransf"):
        known["frame_position_embeddings.weight"] = (LENGTH, TEXT)
    if header == "seqTransf":
        known |= blocks("transformerClip", TEXT, LAYERS)
    if header == "seqLSTM":
        for side in ("ih", "hh"):
            known[f"lstm_visual.weight_{side}_l0"] = (4 * TEXT, TEXT)
            known[f"lstm_visual.bias_{side}_l0"] = (4 * TEXT,)
    if header == "tightTransf":
        known["cross.embeddings.position_embeddings.weight"] = (LENGTH, TEXT)
        known |= blocks("cross.transformer", TEXT, LAYERS)
        known["cross.pooler.ln_pool.weight"] = known["cross.pooler.ln_pool.bias"] = (TEXT,)
        known["cross.pooler.dense.weight"], known["cross.pooler.dense.bias"] = (TEXT, TEXT), (TEXT,)
        known["similarity_dense.weight"], known["similarity_dense.bias"] = (1, TEXT), (1,)
    return known


def state(header: str, patch: str = "2d", seed: int = 0) -> dict[str, np.ndarray]:
    """Random float32 weights of a size that keeps activations within reason."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for key, shape in shapes(header, patch).items():
        fan = np.prod(shape[1:]) if len(shape) > 1 else 100
        arrays[key] = rng.normal(1.0 if ".ln_" in key and key.endswith("weight") else 0.0, fan**-0.5, shape)
    return {key: np.asarray(value, np.float32) for key, value in arrays.items()}
