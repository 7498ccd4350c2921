"""Tiny joint picture-text models: ONNX files as hubs publish them, and a CLIP for `transformers`."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from wordreel.backbones.tokenizer import END, tokenizer_json

MERGES = (
    "r e",
    "re d</w>",
    "b l",
    "bl u",
    "blu e</w>",
    "c a",
    "ca t</w>",
    "d o",
    "do g</w>",
    "t h",
    "th e</w>",
)
VOCABULARY = 512 + len(MERGES) + 2
SIZE, PATCH, WIDTH, DEPTH, HEADS, MLP, DIM, LENGTH = 32, 16, 32, 2, 2, 64, 16, 77
PREPROCESSOR = {
    "crop_size": {"height": SIZE, "width": SIZE},
    "do_center_crop": True,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": {"shortest_edge": SIZE},
}


def write_onnx(folder: Path, seed: int = 0, layout: str = "onnx", suffix: str = "", **graph) -> Path:
    """Write a model in the layout "onnx" (a subfolder), "hub" or "immich"; `graph` is for `write_graphs`."""
    immich, at = layout == "immich", folder / "onnx" if layout == "onnx" else folder
    vision = folder / "visual" / "model.onnx" if immich else at / f"vision_model{suffix}.onnx"
    text = folder / "textual" / "model.onnx" if immich else at / f"text_model{suffix}.onnx"
    for path in (vision, text):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_graphs(vision, text, seed, **graph)
    if immich:
        write_tokenizer(folder / "textual")
        write_json(folder / "textual" / "tokenizer_config.json", {"pad_token": END})
        transform = {"size": [SIZE, SIZE], "mean": [0.5] * 3, "std": [0.25] * 3, "resize_mode": "squash"}
        write_json(folder / "visual" / "preprocess_cfg.json", {**transform, "interpolation": "bicubic"})
        write_json(folder / "config.json", {"embed_dim": DIM, "text_cfg": {"context_length": LENGTH}})
        return folder
    write_tokenizer(folder)
    write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    write_json(folder / "config.json", {"model_type": "clip"})
    return folder


def write_graphs(
    vision: Path,
    text: Path,
    seed: int = 0,
    dim: int = DIM,
    text_dim: int = DIM,
    batch: int | None = None,
    length: int | None = None,
    masked: bool = True,
    half: bool = False,
    outputs: tuple[str, str] = ("image_embeds", "text_embeds"),
) -> None:
    """A picture is a matrix times the means of its quarters, a text the mean of its tokens' vectors.

    With `batch` and `length` the graphs take these numbers only; with `half` pictures are float16.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    matrix, tokens = random_weights(rng, dim, text_dim)
    count, size = batch or "n", length or "t"
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    nodes = [
        helper.make_node("Cast", ["pixel_values"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("AveragePool", ["pixels"], ["means"], kernel_shape=[PATCH] * 2, strides=[PATCH] * 2),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], [outputs[0]]),
    ]
    graph = helper.make_graph(
        nodes,
        "vision",
        [helper.make_tensor_value_info("pixel_values", kind, [count, 3, SIZE, SIZE])],
        [
            helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [count, 3, 2, 2]),
            helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, [count, dim]),
        ],
        [numpy_helper.from_array(matrix, "matrix")],
    )
    graph.node.append(helper.make_node("Identity", ["means"], ["last_hidden_state"]))
    options = {"opset_imports": [helper.make_opsetid("", 17)], "ir_version": 8}
    onnx.save(helper.make_model(graph, **options), vision)
    ids, mask = ("input_ids", "attention_mask") if masked else ("text", "mask")
    kind = TensorProto.INT64 if masked else TensorProto.INT32
    inputs = [helper.make_tensor_value_info(ids, kind, [count, size])]
    nodes = [helper.make_node("Gather", ["tokens", ids], ["vectors"])]
    if masked:
        inputs.append(helper.make_tensor_value_info(mask, kind, [count, size]))
        nodes += [
            helper.make_node("Cast", [mask], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["real", "last"], ["column"]),
            helper.make_node("Mul", ["vectors", "column"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "axis"], ["sums"], keepdims=0),
            helper.make_node("ReduceSum", ["column", "axis"], ["counts"], keepdims=0),
            helper.make_node("Div", ["sums", "counts"], [outputs[1]]),
        ]
    else:
        nodes.append(helper.make_node("ReduceMean", ["vectors"], [outputs[1]], axes=[1], keepdims=0))
    constants = {"tokens": tokens, "last": np.array([2]), "axis": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "text",
        inputs,
        [helper.make_tensor_value_info(outputs[1], TensorProto.FLOAT, [count, text_dim])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, **options), text)


def random_weights(rng, dim=DIM, text_dim=DIM):
    quarters = 3 * (SIZE // PATCH) ** 2
    matrix = rng.normal(0, 0.5, (quarters, dim)).astype(np.float32)
    return matrix, rng.normal(0, 0.5, (VOCABULARY, text_dim)).astype(np.float32)


def write_tokenizer(folder: Path) -> None:
    content = tokenizer_json([merge.split(" ") for merge in MERGES])
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")


def write_clip(folder: Path, seed: int = 0, dim: int = DIM, size: int = SIZE) -> Path:
    """Write a CLIP as `transformers` saves it: configuration, `model.safetensors` and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tower = {
        "hidden_size": WIDTH,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_hidden_layers": DEPTH,
        "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-5,
    }
    text = {**tower, "vocab_size": VOCABULARY, "max_position_embeddings": LENGTH,
            "bos_token_id": VOCABULARY - 2, "eos_token_id": VOCABULARY - 1}  # fmt: skip
    vision = {**tower, "image_size": size, "patch_size": PATCH}
    config = {"architectures": ["CLIPModel"], "model_type": "clip", "projection_dim": dim,
              "text_config": text, "vision_config": vision}  # fmt: skip
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    write_tokenizer(folder)
    save_file(clip_state(seed, dim, size), folder / "model.safetensors", {"format": "pt"})
    return folder


def clip_state(seed: int = 0, dim: int = DIM, size: int = SIZE) -> dict[str, np.ndarray]:
    """Random weights under the names of `transformers`."""
    rng = np.random.default_rng(seed)
    patches = (size // PATCH) ** 2
    shapes: dict[str, tuple[int, ...]] = {
        "text_model.embeddings.token_embedding.weight": (VOCABULARY, WIDTH),
        "text_model.embeddings.position_embedding.weight": (LENGTH, WIDTH),
        **block_shapes("text_model.encoder.layers"),
        **norm_shapes("text_model.final_layer_norm"),
        "text_projection.weight": (dim, WIDTH),
        "vision_model.embeddings.class_embedding": (WIDTH,),
        "vision_model.embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH),
        "vision_model.embeddings.position_embedding.weight": (patches + 1, WIDTH),
        **norm_shapes("vision_model.pre_layrnorm"),
        **block_shapes("vision_model.encoder.layers"),
        **norm_shapes("vision_model.post_layernorm"),
        "visual_projection.weight": (dim, WIDTH),
    }
    state = {key: rng.normal(0, 0.25, shape).astype(np.float32) for key, shape in shapes.items()}
    norms = {key: value + 1 for key, value in state.items() if "norm" in key and key.endswith("weight")}
    return {**state, **norms, "logit_scale": np.array(np.log(100), np.float32)}


def block_shapes(key: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(DEPTH):
        at = f"{key}.{layer}"
        shapes |= norm_shapes(f"{at}.layer_norm1") | norm_shapes(f"{at}.layer_norm2")
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= {
                f"{at}.self_attn.{part}.weight": (WIDTH, WIDTH),
                f"{at}.self_attn.{part}.bias": (WIDTH,),
            }
        shapes |= {f"{at}.mlp.fc1.weight": (MLP, WIDTH), f"{at}.mlp.fc1.bias": (MLP,)}
        shapes |= {f"{at}.mlp.fc2.weight": (WIDTH, MLP), f"{at}.mlp.fc2.bias": (WIDTH,)}
    return shapes


def norm_shapes(key: str) -> dict[str, tuple[int, ...]]:
    return {f"{key}.weight": (WIDTH,), f"{key}.bias": (WIDTH,)}


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
