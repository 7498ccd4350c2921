"""States in the layouts of other programs, made key by key from one in the layout of `transformers`."""

import numpy as np


def openai_state(state, text=""):
    """OpenAI's layout; `text` is open_clip's prefix of the text tower."""
    out = {}
    for at, there in (("vision_model", "visual."), ("text_model", text)):
        layers = {key.split(".")[3] for key in state if key.startswith(f"{at}.encoder.layers.")}
        for layer in sorted(layers):
            old, new = f"{at}.encoder.layers.{layer}", f"{there}transformer.resblocks.{layer}"
            for kind in ("weight", "bias"):
                q, k, v = (state[f"{old}.self_attn.{part}_proj.{kind}"] for part in "qkv")
                out[f"{new}.attn.in_proj_{kind}"] = np.concatenate([q, k, v])
                out[f"{new}.attn.out_proj.{kind}"] = state[f"{old}.self_attn.out_proj.{kind}"]
                out[f"{new}.ln_1.{kind}"] = state[f"{old}.layer_norm1.{kind}"]
                out[f"{new}.ln_2.{kind}"] = state[f"{old}.layer_norm2.{kind}"]
                out[f"{new}.mlp.c_fc.{kind}"] = state[f"{old}.mlp.fc1.{kind}"]
                out[f"{new}.mlp.c_proj.{kind}"] = state[f"{old}.mlp.fc2.{kind}"]
    for kind in ("weight", "bias"):
        out[f"visual.ln_pre.{kind}"] = state[f"vision_model.pre_layrnorm.{kind}"]
        out[f"visual.ln_post.{kind}"] = state[f"vision_model.post_layernorm.{kind}"]
        out[f"{text}ln_final.{kind}"] = state[f"text_model.final_layer_norm.{kind}"]
    embeddings = "vision_model.embeddings"
    if f"{embeddings}.class_embedding" in state:
        out["visual.class_embedding"] = state[f"{embeddings}.class_embedding"]
    out["visual.conv1.weight"] = state[f"{embeddings}.patch_embedding.weight"]
    out["visual.positional_embedding"] = state[f"{embeddings}.position_embedding.weight"]
    out["visual.proj"] = state["visual_projection.weight"].T
    out[f"{text}token_embedding.weight"] = state["text_model.embeddings.token_embedding.weight"]
    out[f"{text}positional_embedding"] = state["text_model.embeddings.position_embedding.weight"]
    out[f"{text}text_projection"] = state["text_projection.weight"].T
    if "vision_model.head.probe" in state:
        head, pool = "vision_model.head", "visual.attn_pool"
        out[f"{pool}.probe"] = state[f"{head}.probe"]
        for kind in ("weight", "bias"):
            out[f"{pool}.attn.in_proj_{kind}"] = state[f"{head}.attention.in_proj_{kind}"]
            out[f"{pool}.attn.out_proj.{kind}"] = state[f"{head}.attention.out_proj.{kind}"]
            out[f"{pool}.layernorm.{kind}"] = state[f"{head}.layernorm.{kind}"]
            out[f"{pool}.mlp.c_fc.{kind}"] = state[f"{head}.mlp.fc1.{kind}"]
            out[f"{pool}.mlp.c_proj.{kind}"] = state[f"{head}.mlp.fc2.{kind}"]
    out["logit_scale"] = state["logit_scale"]
    return out


def timm_siglip_state(state):
    """open_clip's layout of SigLIP: an image tower of `timm`, a text tower with a biased projection."""
    out, trunk = {}, "visual.trunk"
    layers = {key.split(".")[3] for key in state if key.startswith("vision_model.encoder.layers.")}
    for kind in ("weight", "bias"):
        for layer in layers:
            old, new = f"vision_model.encoder.layers.{layer}", f"{trunk}.blocks.{layer}"
            q, k, v = (state[f"{old}.self_attn.{part}_proj.{kind}"] for part in "qkv")
            out[f"{new}.attn.qkv.{kind}"] = np.concatenate([q, k, v])
            out[f"{new}.attn.proj.{kind}"] = state[f"{old}.self_attn.out_proj.{kind}"]
            out[f"{new}.norm1.{kind}"] = state[f"{old}.layer_norm1.{kind}"]
            out[f"{new}.norm2.{kind}"] = state[f"{old}.layer_norm2.{kind}"]
            out[f"{new}.mlp.fc1.{kind}"] = state[f"{old}.mlp.fc1.{kind}"]
            out[f"{new}.mlp.fc2.{kind}"] = state[f"{old}.mlp.fc2.{kind}"]
        out[f"{trunk}.patch_embed.proj.{kind}"] = state[f"vision_model.embeddings.patch_embedding.{kind}"]
        out[f"{trunk}.norm.{kind}"] = state[f"vision_model.post_layernorm.{kind}"]
        head, pool = "vision_model.head", f"{trunk}.attn_pool"
        whole = state[f"{head}.attention.in_proj_{kind}"]
        width = len(whole) // 3
        out[f"{pool}.q.{kind}"], out[f"{pool}.kv.{kind}"] = whole[:width], whole[width:]
        out[f"{pool}.proj.{kind}"] = state[f"{head}.attention.out_proj.{kind}"]
        out[f"{pool}.norm.{kind}"] = state[f"{head}.layernorm.{kind}"]
        out[f"{pool}.mlp.fc1.{kind}"] = state[f"{head}.mlp.fc1.{kind}"]
        out[f"{pool}.mlp.fc2.{kind}"] = state[f"{head}.mlp.fc2.{kind}"]
        out[f"text.text_projection.{kind}"] = state[f"text_model.head.{kind}"]
    out[f"{trunk}.pos_embed"] = state["vision_model.embeddings.position_embedding.weight"][None]
    out[f"{trunk}.attn_pool.latent"] = state["vision_model.head.probe"]
    blank = {
        key: value for key, value in state.items() if key.startswith("text_model.") and "head" not in key
    }
    filler = dict.fromkeys(("visual_projection.weight", "text_projection.weight"), np.zeros((1, 1)))
    for name in ("pre_layrnorm", "post_layernorm"):
        filler |= {f"vision_model.{name}.{kind}": np.zeros(1) for kind in ("weight", "bias")}
    filler |= {
        f"vision_model.embeddings.{key}.weight": np.zeros(1)
        for key in ("patch_embedding", "position_embedding")
    }
    text = openai_state({**blank, **filler, "logit_scale": state["logit_scale"]}, "text.")
    return {
        **out,
        **{key: text[key] for key in text if key.startswith("text.") and key != "text.text_projection"},
    }
