"""Write a MobileCLIP in Apple's layout: the inverse of what is read, made from open_clip's names."""

import re

import numpy as np

BRANCHES = {
    "conv_kxk": "rbr_conv",
    "conv_scale": "rbr_scale",
    "identity": "rbr_skip",
    "large_conv": "lkb_origin",
    "se.fc1": "se.reduce",
    "se.fc2": "se.expand",
    "final_conv": "conv_exp",
}
VIT_BLOCK = {
    "norm1": "pre_norm_mha.0",
    "attn.qkv": "pre_norm_mha.1.qkv_proj",
    "attn.proj": "pre_norm_mha.1.out_proj",
    "norm2": "pre_norm_ffn.0",
    "mlp.fc1": "pre_norm_ffn.1",
    "mlp.fc2": "pre_norm_ffn.4",
}
TEXT = {
    "ln_1": "pre_norm_mha.0",
    "attn.in_proj_": "pre_norm_mha.1.qkv_proj.",
    "attn.out_proj": "pre_norm_mha.1.out_proj",
    "ln_2": "pre_norm_ffn.0",
    "mlp.c_fc": "pre_norm_ffn.1",
    "mlp.c_proj": "pre_norm_ffn.4",
    "token_embedding": "embedding_layer",
    "ln_final": "final_layer_norm",
    "text_projection": "projection_layer",
}


def apple_state(state):
    """The same weights by Apple's names; heads lose their bias, which must be zero."""
    out = {}
    for key, value in state.items():
        if key.startswith("visual.trunk."):
            name, value = _image(key.removeprefix("visual.trunk."), value)
            if name:
                out[f"image_encoder.model.{name}"] = value
        elif key.startswith("text."):
            name = key.removeprefix("text.")
            if name == "positional_embedding":
                name, value = "positional_embedding.pos_embed.pos_embed", value[None, None]
            out[f"text_encoder.{_replace(name.replace('resblocks.', ''), TEXT)}"] = value
        else:
            out[key] = value
    return out


def _image(name, value):
    if name in ("head.fc.bias", "head.bias"):
        assert not value.any()
        return None, None
    if name in ("head.fc.weight", "head.weight"):
        return ("head.proj" if ".fc" in name else "classifier.proj"), np.ascontiguousarray(value.T)
    if name == "pos_embed":
        return "pos_embed.pos_embed.pos_embed", value[None]
    if name.startswith(("patch_embed.backbone.", "blocks.", "norm.", "cls_token")):
        name = re.sub(r"^patch_embed\.backbone\.(\d)\.conv", r"patch_emb.\1.block.conv", name)
        name = re.sub(r"^patch_embed\.backbone\.(\d)\.bn", r"patch_emb.\1.block.norm", name)
        name = re.sub(r"^norm\.", "post_transformer_norm.", name)
        return re.sub(r"^blocks\.", "transformer.", _replace(name, VIT_BLOCK)), value
    name = re.sub(r"^stem\.", "patch_embed.", _replace(name, BRANCHES).removesuffix(".gamma"))
    name = re.sub(r"\.mlp\.", ".convffn.", name)
    if match := re.match(r"stages\.(\d+)\.(downsample\.proj|pos_emb\.pos_enc|blocks)\.", name):
        # Blocks, downsamplings and the positions of the last of four stages are numbered in one row.
        stage, part, rest = int(match[1]), match[2], name[match.end() :]
        number = {"downsample.proj": 2 * stage - 1, "pos_emb.pos_enc": 2 * stage, "blocks": 2 * stage}[part]
        number += part == "blocks" and stage == 3
        name = (
            f"network.{number}." + {"downsample.proj": "proj.", "pos_emb.pos_enc": "pe.", "blocks": ""}[part]
        )
        name += rest
    return name, value


def _replace(name, table):
    for old, new in table.items():
        name = name.replace(old, new)
    return name
