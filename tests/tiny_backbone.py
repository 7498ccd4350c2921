"""Directories in the layout of the `transformers` library that hold tiny CLIP and SigLIP models.

Weights are random; the towers are a few thousand parameters, so that every test may convert one.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

SPECIAL = ("<|startoftext|>", "<|endoftext|>")
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
SIZE, PATCH, WIDTH, DEPTH, HEADS, MLP, DIM, LENGTH = 32, 16, 32, 2, 2, 64, 16, 77


def byte_symbols() -> list[str]:
    """The printable stand-ins of the 256 bytes, in the order of GPT-2's and CLIP's vocabularies."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + number) for number in range(len(rest))]


def clip_vocabulary() -> dict[str, int]:
    """Bytes, bytes at the end of a word, one entry for each merge, and the two special tokens last."""
    symbols = byte_symbols()
    merged = [merge.replace(" ", "") for merge in MERGES]
    tokens = [*symbols, *(f"{symbol}</w>" for symbol in symbols), *merged, *SPECIAL]
    return {token: number for number, token in enumerate(tokens)}


def write_clip(folder: Path, seed: int = 0, dim: int = DIM, size: int = SIZE) -> Path:
    """Write `config.json`, the preprocessor's and tokenizer's files and `model.safetensors` of a CLIP."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = clip_vocabulary()
    tower = {
        "hidden_size": WIDTH,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_hidden_layers": DEPTH,
        "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-5,
    }
    text = {
        **tower,
        "model_type": "clip_text_model",
        "vocab_size": len(vocabulary),
        "max_position_embeddings": LENGTH,
        "bos_token_id": vocabulary[SPECIAL[0]],
        "eos_token_id": vocabulary[SPECIAL[1]],
    }
    vision = {**tower, "model_type": "clip_vision_model", "image_size": size, "patch_size": PATCH}
    config = {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": dim,
        "logit_scale_init_value": 2.6592,
        "text_config": text,
        "vision_config": vision,
    }
    preprocessor = {
        "crop_size": {"height": size, "width": size},
        "do_center_crop": True,
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "image_processor_type": "CLIPImageProcessor",
        "resample": 3,
        "rescale_factor": 1 / 255,
        "size": {"shortest_edge": size},
    }
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", preprocessor)
    write_json(folder / "vocab.json", vocabulary)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    save_file(clip_state(seed, dim, size), folder / "model.safetensors", {"format": "pt"})
    return folder


def clip_state(seed: int = 0, dim: int = DIM, size: int = SIZE) -> dict[str, np.ndarray]:
    """Random weights under the names of `transformers`."""
    rng = np.random.default_rng(seed)
    patches = (size // PATCH) ** 2
    shapes: dict[str, tuple[int, ...]] = {
        "text_model.embeddings.token_embedding.weight": (len(clip_vocabulary()), WIDTH),
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
    return {**random_state(rng, shapes), "logit_scale": np.array(np.log(100), np.float32)}


def write_siglip(folder: Path, seed: int = 0, width: int = WIDTH, size: int = SIZE) -> Path:
    """The same for a SigLIP, whose vocabulary is a `tokenizer.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = siglip_tokenizer(folder / "tokenizer.json")
    tower = {
        "hidden_size": width,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_hidden_layers": DEPTH,
        "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-6,
    }
    text = {
        **tower, "model_type": "siglip_text_model", "vocab_size": pieces, "max_position_embeddings": 64,
        "projection_size": width,
    }  # fmt: skip
    vision = {**tower, "model_type": "siglip_vision_model", "image_size": size, "patch_size": PATCH}
    config = {
        "architectures": ["SiglipModel"],
        "model_type": "siglip",
        "text_config": text,
        "vision_config": vision,
    }
    preprocessor = {
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "image_processor_type": "SiglipImageProcessor",
        "resample": 3,
        "rescale_factor": 1 / 255,
        "size": {"height": size, "width": size},
    }
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", preprocessor)
    save_file(siglip_state(seed, width, size, pieces), folder / "model.safetensors", {"format": "pt"})
    return folder


def siglip_state(seed: int, width: int, size: int, pieces: int) -> dict[str, np.ndarray]:
    """Random weights under the names of `transformers`."""
    rng = np.random.default_rng(seed)
    head = "vision_model.head"
    shapes: dict[str, tuple[int, ...]] = {
        "text_model.embeddings.token_embedding.weight": (pieces, width),
        "text_model.embeddings.position_embedding.weight": (64, width),
        **block_shapes("text_model.encoder.layers", width),
        **norm_shapes("text_model.final_layer_norm", width),
        "text_model.head.weight": (width, width),
        "text_model.head.bias": (width,),
        "vision_model.embeddings.patch_embedding.weight": (width, 3, PATCH, PATCH),
        "vision_model.embeddings.patch_embedding.bias": (width,),
        "vision_model.embeddings.position_embedding.weight": ((size // PATCH) ** 2, width),
        **block_shapes("vision_model.encoder.layers", width),
        **norm_shapes("vision_model.post_layernorm", width),
        f"{head}.probe": (1, 1, width),
        f"{head}.attention.in_proj_weight": (3 * width, width),
        f"{head}.attention.in_proj_bias": (3 * width,),
        f"{head}.attention.out_proj.weight": (width, width),
        f"{head}.attention.out_proj.bias": (width,),
        **norm_shapes(f"{head}.layernorm", width),
        f"{head}.mlp.fc1.weight": (MLP, width),
        f"{head}.mlp.fc1.bias": (MLP,),
        f"{head}.mlp.fc2.weight": (width, MLP),
        f"{head}.mlp.fc2.bias": (width,),
    }
    scale = {
        "logit_scale": np.array([np.log(117.3)], np.float32),
        "logit_bias": np.array([-12.9], np.float32),
    }
    return {**random_state(rng, shapes), **scale}


def siglip_tokenizer(path: Path) -> int:
    """Write a SentencePiece-like vocabulary of single letters and a few words; its size."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    letters = [f"▁{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + list("abcdefghijklmnopqrstuvwxyz▁")
    words = ["▁red", "▁blue", "▁cat", "▁dog", "▁the"]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), *((word, -3.0) for word in words)]
    pieces += [(letter, -8.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(path))
    return len(pieces)


def block_shapes(key: str, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(DEPTH):
        at = f"{key}.{layer}"
        shapes |= norm_shapes(f"{at}.layer_norm1", width) | norm_shapes(f"{at}.layer_norm2", width)
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= {
                f"{at}.self_attn.{part}.weight": (width, width),
                f"{at}.self_attn.{part}.bias": (width,),
            }
        shapes |= {f"{at}.mlp.fc1.weight": (MLP, width), f"{at}.mlp.fc1.bias": (MLP,)}
        shapes |= {f"{at}.mlp.fc2.weight": (width, MLP), f"{at}.mlp.fc2.bias": (width,)}
    return shapes


def norm_shapes(key: str, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    return {f"{key}.weight": (width,), f"{key}.bias": (width,)}


def random_state(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Matrices large enough that different inputs give clearly different outputs."""
    state = {key: rng.normal(0, 0.25, shape).astype(np.float32) for key, shape in shapes.items()}
    return {
        key: value + 1 if "norm" in key and key.endswith("weight") else value for key, value in state.items()
    }


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
