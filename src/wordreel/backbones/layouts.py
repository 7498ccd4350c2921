"""Convert the weights of joint picture-text models between the layouts in which they are published.

`to_huggingface` reads OpenAI's layout (CLIP, open_clip, Perception Encoder) and open_clip's for image towers
of `timm` (SigLIP, PE-Core), and gives the names of `transformers`; `to_openai` goes the other way. Both leave
names they do not know as they are, so that a check can name them, and read arrays only when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from wordreel.runtime.nets.checkpoint import WRAPPER, Array
from wordreel.runtime.torch_files.lazy_state import LazyState

State = Mapping[str, Array]
Readers = dict[str, Callable[[], Array]]
BUFFERS = re.compile(
    r"(text\.)?attn_mask|input_resolution|context_length|vocab_size|.*\.position_ids|visual\.trunk\.rope\..*"
)
VISION, TEXT = "vision_model", "text_model"
PARTS = "qkv"

# Names in OpenAI's layout, which open_clip and the Perception Encoder extend, and in that of `transformers`.
OPENAI_BLOCK = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
    "attn.out_proj": "self_attn.out_proj",
}
OPENAI = {
    "visual.class_embedding": f"{VISION}.embeddings.class_embedding",
    "visual.positional_embedding": f"{VISION}.embeddings.position_embedding.weight",
    "visual.conv1": f"{VISION}.embeddings.patch_embedding",
    "visual.ln_pre": f"{VISION}.pre_layrnorm",
    "visual.ln_post": f"{VISION}.post_layernorm",
    "visual.attn_pool.probe": f"{VISION}.head.probe",
    "visual.attn_pool.attn": f"{VISION}.head.attention",
    "visual.attn_pool.layernorm": f"{VISION}.head.layernorm",
    "visual.attn_pool.mlp.c_fc": f"{VISION}.head.mlp.fc1",
    "visual.attn_pool.mlp.c_proj": f"{VISION}.head.mlp.fc2",
    "token_embedding": f"{TEXT}.embeddings.token_embedding",
    "positional_embedding": f"{TEXT}.embeddings.position_embedding.weight",
    "ln_final": f"{TEXT}.final_layer_norm",
}
TRANSPOSED = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
OPENAI_BLOCKS = {
    "visual.transformer.resblocks": f"{VISION}.encoder.layers",
    "transformer.resblocks": f"{TEXT}.encoder.layers",
}
# A text projection with a bias is a linear layer, which SigLIP calls the head.
TEXT_HEAD = {"text_projection.weight": f"{TEXT}.head.weight", "text_projection.bias": f"{TEXT}.head.bias"}

# Names in `timm`'s vision transformers.
TIMM_BLOCK = {
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
    "attn.proj": "self_attn.out_proj",
}
TIMM = {
    "patch_embed.proj": f"{VISION}.embeddings.patch_embedding",
    "norm_pre": f"{VISION}.pre_layrnorm",
    "norm": f"{VISION}.post_layernorm",
    "attn_pool.latent": f"{VISION}.head.probe",
    "attn_pool.proj": f"{VISION}.head.attention.out_proj",
    "attn_pool.norm": f"{VISION}.head.layernorm",
    "attn_pool.mlp.fc1": f"{VISION}.head.mlp.fc1",
    "attn_pool.mlp.fc2": f"{VISION}.head.mlp.fc2",
    "head": "visual_projection",
}
TIMM_BLOCKS = {"blocks": f"{VISION}.encoder.layers"}
TRUNK = "visual.trunk."


def is_huggingface(state: Iterable[str]) -> bool:
    """Whether the names are those of `transformers`."""
    return any(key.startswith((f"{VISION}.", f"{TEXT}.")) for key in state)


def to_huggingface(state: State) -> State:
    """The same weights by the names of `transformers`, from any of the layouts.

    >>> state = to_huggingface({"visual.transformer.resblocks.0.attn.in_proj_bias": np.arange(9)})
    >>> state["vision_model.encoder.layers.0.self_attn.k_proj.bias"]
    array([3, 4, 5])
    """
    state = LazyState({key.removeprefix(WRAPPER): _read(state, key) for key in state})
    readers: Readers = {}
    known = is_huggingface(state)
    for key in state:
        if BUFFERS.fullmatch(key):
            continue
        if known:
            readers[key] = _read(state, key)
        elif key.startswith(TRUNK):
            readers |= _from_timm(state, key)
        else:
            readers |= _from_openai(state, key)
    return LazyState(readers)


def to_openai(state: State) -> State:
    """The same weights by the names of OpenAI's CLIP, from any of the layouts."""
    state = to_huggingface(state)
    readers: Readers = {}
    plain, blocks, inside, transposed, heads = (
        {new: old for old, new in table.items()}
        for table in (OPENAI, OPENAI_BLOCKS, OPENAI_BLOCK, TRANSPOSED, TEXT_HEAD)
    )
    for key in state:
        if key in transposed:
            readers[transposed[key]] = _read(state, key, np.transpose)
        elif match := re.fullmatch(r"(.+)\.(\d+)\.self_attn\.([qkv])_proj\.(weight|bias)", key):
            at, number, part, kind = match.groups()
            parts = [f"{at}.{number}.self_attn.{each}_proj.{kind}" for each in PARTS]
            if part == "q" and all(name in state for name in parts):
                readers[f"{blocks.get(at, at)}.{number}.attn.in_proj_{kind}"] = _joined(state, parts)
        else:
            readers[heads.get(key) or _renamed(key, plain, blocks, inside)] = _read(state, key)
    return LazyState(readers)


def _from_openai(state: State, key: str) -> Readers:
    """What one array of OpenAI's layout becomes; open_clip may put `text.` before the text tower's."""
    name = key.removeprefix("text.")
    if name in TRANSPOSED:
        return {TRANSPOSED[name]: _read(state, key, np.transpose)}
    if name in TEXT_HEAD:
        return {TEXT_HEAD[name]: _read(state, key)}
    if match := re.fullmatch(
        r"((?:visual\.)?transformer\.resblocks)\.(\d+)\.attn\.in_proj_(weight|bias)", name
    ):
        return _split(state, key, f"{OPENAI_BLOCKS[match[1]]}.{match[2]}", match[3])
    return {_renamed(name, OPENAI, OPENAI_BLOCKS, OPENAI_BLOCK): _read(state, key)}


def _from_timm(state: State, key: str) -> Readers:
    """What one array of `timm`'s layout becomes; there, the pooling's query is apart from key and value."""
    name = key.removeprefix(TRUNK)
    if name == "pos_embed":
        return {f"{VISION}.embeddings.position_embedding.weight": _read(state, key, lambda x: x[0])}
    if name == "cls_token":
        return {f"{VISION}.embeddings.class_embedding": _read(state, key, lambda x: x[0, 0])}
    if match := re.fullmatch(r"blocks\.(\d+)\.attn\.qkv\.(weight|bias)", name):
        return _split(state, key, f"{TIMM_BLOCKS['blocks']}.{match[1]}", match[2])
    if match := re.fullmatch(r"attn_pool\.(q|kv)\.(weight|bias)", name):
        parts = [f"{TRUNK}attn_pool.{part}.{match[2]}" for part in ("q", "kv")]
        if all(part in state for part in parts):
            return {f"{VISION}.head.attention.in_proj_{match[2]}": _joined(state, parts)}
    renamed = _renamed(name, TIMM, TIMM_BLOCKS, TIMM_BLOCK)
    return {key if renamed == name else renamed: _read(state, key)}


def _split(state: State, key: str, at: str, kind: str) -> Readers:
    """Query, key and value out of one array."""

    def third(number: int) -> Callable[[Array], Array]:
        return lambda x: x[number * (len(x) // 3) : (number + 1) * (len(x) // 3)]

    return {
        f"{at}.self_attn.{part}_proj.{kind}": _read(state, key, third(number))
        for number, part in enumerate(PARTS)
    }


def _renamed(
    name: str, plain: Mapping[str, str], blocks: Mapping[str, str], inside: Mapping[str, str]
) -> str:
    """The name by the table of blocks and what is inside them, else by the plain one."""
    for old, new in blocks.items():
        if match := re.fullmatch(rf"{re.escape(old)}\.(\d+)\.(.+)", name):
            return f"{new}.{match[1]}.{_replaced(match[2], inside)}"
    return _replaced(name, plain)


def _replaced(name: str, table: Mapping[str, str]) -> str:
    for old, new in table.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return name


def _read(state: State, key: str, change: Callable[[Array], Array] | None = None) -> Callable[[], Array]:
    return (lambda: state[key]) if change is None else (lambda: change(state[key]))


def _joined(state: State, keys: list[str]) -> Callable[[], Array]:
    return lambda: np.concatenate([state[key] for key in keys])
