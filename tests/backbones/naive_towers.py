"""Slow, obvious twins of the towers of joint picture-text models: plain NumPy in float64, one picture or text
at a time, written from the papers."""

import math

import numpy as np

erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


class NaiveTower:
    """Layers by the names under which a checkpoint holds them, and the configuration of one tower."""

    def __init__(self, state, config, at):
        self.state = {key: np.asarray(value, np.float64) for key, value in state.items()}
        self.config, self.at = config, at

    def linear(self, x, key):
        return x @ self.state[f"{key}.weight"].T + self.state.get(f"{key}.bias", 0.0)

    def norm(self, x, key):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + self.config.epsilon)
        return centred / spread * self.state[f"{key}.weight"] + self.state[f"{key}.bias"]

    def mlp(self, x, key):
        return self.linear(ACTIVATIONS[self.config.activation](self.linear(x, f"{key}.fc1")), f"{key}.fc2")

    def attend(self, q, k, v, heads, turn=None):
        """`[tokens, width]`, one head and one query after the other."""
        each = q.shape[1] // heads
        out = np.zeros_like(q)
        for head in range(heads):
            part = slice(head * each, (head + 1) * each)
            for row in range(len(q)):
                seen = row + 1 if getattr(self.config, "causal", False) else len(k)
                query = q[row, part] if turn is None else turn(q[row, part], row)
                keys = [k[c, part] if turn is None else turn(k[c, part], c) for c in range(seen)]
                scores = np.array([query @ key for key in keys]) / math.sqrt(each)
                shares = np.exp(scores - scores.max())
                out[row, part] = (shares / shares.sum()) @ v[:seen, part]
        return out

    def blocks(self, x, turn=None):
        for layer in range(self.config.depth):
            key = f"{self.at}.encoder.layers.{layer}"
            y = self.norm(x, f"{key}.layer_norm1")
            q, k, v = (self.linear(y, f"{key}.self_attn.{part}_proj") for part in "qkv")
            y = self.attend(q, k, v, self.config.heads, turn)
            x = x + self.linear(y, f"{key}.self_attn.out_proj")
            x = x + self.mlp(self.norm(x, f"{key}.layer_norm2"), f"{key}.mlp")
        return x


def image_features(backbone, state, frames):
    """`[n, 3, size, size]` to `[n, dim]`."""
    return np.stack([_image(backbone, state, frame) for frame in np.asarray(frames, np.float64)])


def text_features(backbone, state, ids):
    """`[n, length]` to `[n, dim]`."""
    return np.stack([_text(backbone, state, row) for row in ids])


def _image(backbone, state, frame):
    config, at = backbone.vision, "vision_model"
    tower = NaiveTower(state, config, at)
    weight = tower.state[f"{at}.embeddings.patch_embedding.weight"]
    bias = tower.state.get(f"{at}.embeddings.patch_embedding.bias", 0.0)
    side, patch = config.size // config.patch, config.patch
    tokens = []
    for row in range(side):
        for column in range(side):
            pixels = frame[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
            tokens.append(np.tensordot(weight, pixels, 3) + bias)
    if config.class_token:
        tokens.insert(0, tower.state[f"{at}.embeddings.class_embedding"])
    x = np.stack(tokens) + tower.state[f"{at}.embeddings.position_embedding.weight"]
    if config.pre_norm:
        x = tower.norm(x, f"{at}.pre_layrnorm")
    x = tower.blocks(x, _turn(config) if config.rotary else None)
    x = tower.norm(x, f"{at}.post_layernorm")
    x = x[0] if config.pooling == "class" else _attention_pool(tower, x)
    return tower.linear(x, "visual_projection") if config.projection else x


def _turn(config):
    """Rotates the pairs of one query or key by the column and row of its token, as complex numbers."""

    def turn(vector, token):
        if config.class_token and token == 0:
            return vector
        row, column = divmod(token - config.class_token, config.size // config.patch)
        row, column = row + config.class_token, column + config.class_token
        pairs = len(vector) // 2
        turned = np.zeros_like(vector)
        for pair in range(pairs):
            place, number = (column, pair) if pair < pairs // 2 else (row, pair - pairs // 2)
            angle = place / 10000 ** (number / (pairs // 2))
            value = complex(vector[2 * pair], vector[2 * pair + 1]) * np.exp(1j * angle)
            turned[2 * pair : 2 * pair + 2] = value.real, value.imag
        return turned

    return turn


def _attention_pool(tower, x):
    key, width = f"{tower.at}.head", tower.config.width
    weight = tower.state[f"{key}.attention.in_proj_weight"]
    bias = tower.state[f"{key}.attention.in_proj_bias"]
    q, k, v = (
        side @ weight[n * width : (n + 1) * width].T + bias[n * width : (n + 1) * width]
        for n, side in enumerate((tower.state[f"{key}.probe"][0], x, x))
    )
    y = tower.attend(q, k, v, tower.config.pool_heads or tower.config.heads)
    y = tower.linear(y, f"{key}.attention.out_proj")
    return (y + tower.mlp(tower.norm(y, f"{key}.layernorm"), f"{key}.mlp"))[0]


def _text(backbone, state, ids):
    config, at = backbone.text, "text_model"
    tower = NaiveTower(state, config, at)
    words = tower.state[f"{at}.embeddings.token_embedding.weight"][ids]
    x = words + tower.state[f"{at}.embeddings.position_embedding.weight"][: len(ids)]
    x = tower.norm(tower.blocks(x), f"{at}.final_layer_norm")
    if config.pooling == "last":
        x = x[-1]
    else:
        end = config.end_token if config.end_token >= 0 else max(ids)
        x = x[list(ids).index(end)]
    return tower.linear(x, f"{at}.head" if config.projection_bias else "text_projection")
