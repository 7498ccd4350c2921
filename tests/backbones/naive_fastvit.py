"""A slow, obvious twin of FastViT as it is trained: every branch of every block runs, nothing is fused."""

import math

import numpy as np
from tests.runtime.nets.naive_nets import Naive, relu, sigmoid, softmax

erf = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


class BranchState:
    """Random train-time weights under timm's names, drawn as the blocks are listed."""

    def __init__(self, seed=0):
        self.rng, self.state = np.random.default_rng(seed), {}

    def tensor(self, key, *shape):
        fan = math.prod(shape[1:]) or 1
        self.state[key] = (self.rng.normal(size=shape) / math.sqrt(fan)).astype(np.float32)

    def norm(self, key, channels):
        for part in ("weight", "bias", "running_mean", "running_var"):
            low, high = (-0.5, 0.5) if part in ("bias", "running_mean") else (0.5, 1.5)
            self.state[f"{key}.{part}"] = self.rng.uniform(low, high, channels).astype(np.float32)

    def conv(self, key, *shape, bias=True):
        self.tensor(f"{key}.weight", *shape)
        if bias:
            self.tensor(f"{key}.bias", shape[0])

    def conv_norm(self, key, *shape):
        self.conv(f"{key}.conv", *shape, bias=False)
        self.norm(f"{key}.bn", shape[0])

    def mobile_one(self, key, out, into, *kernel, scale=True, skip=False):
        self.conv_norm(f"{key}.conv_kxk.0", out, into, *kernel)
        if scale and max(kernel) > 1:
            self.conv_norm(f"{key}.conv_scale", out, into, 1, 1)
        if skip:
            self.norm(f"{key}.identity", out)

    def squeeze(self, key, width, inner):
        self.conv(f"{key}.fc1", inner, width, 1, 1)
        self.conv(f"{key}.fc2", width, inner, 1, 1)

    def mixer(self, key, width, *kernel, scale=True):
        self.norm(f"{key}.norm.identity", width)
        self.mobile_one(f"{key}.mixer", width, 1, *kernel, scale=scale, skip=True)
        self.tensor(f"{key}.layer_scale.gamma", width, 1, 1)

    def mlp(self, key, width, inner, *kernel):
        self.conv_norm(f"{key}.conv", width, 1, *kernel)
        self.conv(f"{key}.fc1", inner, width, 1, 1)
        self.conv(f"{key}.fc2", width, inner, 1, 1)


def fastvit_state(variant, dim, seed=0):
    """The train-time state of a FastViT."""
    made, widths = BranchState(seed), variant.widths()
    made.mobile_one("stem.0", widths[0], 3, 3, 3)
    made.mobile_one("stem.1", widths[0], 1, 3, 3)
    made.mobile_one("stem.2", widths[0], widths[0], 1, 1, skip=True)
    for stage, (width, depth) in enumerate(zip(widths, variant.depths, strict=True)):
        at = f"stages.{stage}"
        if stage:
            made.conv_norm(f"{at}.downsample.proj.0.large_conv", width, 1, 7, 7)
            made.conv_norm(f"{at}.downsample.proj.0.small_conv", width, 1, 3, 3)
            if stage in variant.squeezed:
                made.squeeze(f"{at}.downsample.proj.0.se", width, 8)
            made.mobile_one(f"{at}.downsample.proj.1", width, width, 1, 1, skip=True)
        attends = stage >= len(widths) - variant.attention_stages
        if attends:
            made.conv(f"{at}.pos_emb.pos_enc", width, 1, 7, 7)
        for block in range(depth):
            key = f"{at}.blocks.{block}"
            if attends:
                made.norm(f"{key}.norm", width)
                if variant.layer_norm:
                    made.state = {k: v for k, v in made.state.items() if ".norm.running_" not in k}
                made.tensor(f"{key}.token_mixer.qkv.weight", 3 * width, width)
                made.conv(f"{key}.token_mixer.proj", width, width)
                made.tensor(f"{key}.layer_scale_1.gamma", width, 1, 1)
                made.tensor(f"{key}.layer_scale_2.gamma", width, 1, 1)
            else:
                made.mixer(f"{key}.token_mixer", width, 3, 3)
                made.tensor(f"{key}.layer_scale.gamma", width, 1, 1)
            made.mlp(f"{key}.mlp", width, variant.mlp_ratio * width, 7, 7)
    made.mobile_one("final_conv", 2 * widths[-1], 1, 3, 3)
    made.squeeze("final_conv.se", 2 * widths[-1], max(1, round(widths[-1] / 8)))
    made.conv("head.fc", dim, 2 * widths[-1])
    return made.state


class Branches(Naive):
    """The blocks of a FastViT in training form."""

    def conv_norm(self, x, key, stride=1, groups=1):
        pad = [size // 2 for size in self.state[f"{key}.conv.weight"].shape[2:]]
        return self.norm(self.conv(x, f"{key}.conv", stride, pad, groups), f"{key}.bn")

    def mobile_one(self, x, key, stride=1, groups=1):
        out = 0.0
        for branch in ("conv_kxk.0", "conv_scale"):
            if f"{key}.{branch}.conv.weight" in self.state:
                out = out + self.conv_norm(x, f"{key}.{branch}", stride, groups)
        return out + self.norm(x, f"{key}.identity") if f"{key}.identity.weight" in self.state else out

    def squeeze(self, x, key):
        y = x.mean((2, 3), keepdims=True)
        return x * sigmoid(self.conv(relu(self.conv(y, f"{key}.fc1")), f"{key}.fc2"))

    def mlp(self, x, key, width):
        y = self.conv_norm(x, f"{key}.conv", groups=width)
        return self.conv(gelu(self.conv(y, f"{key}.fc1")), f"{key}.fc2")

    def mixer_block(self, x, key):
        at, width = f"{key}.token_mixer", x.shape[1]
        change = self.mobile_one(x, f"{at}.mixer", groups=width) - self.norm(x, f"{at}.norm.identity")
        x = x + self.state[f"{at}.layer_scale.gamma"] * change
        return x + self.state[f"{key}.layer_scale.gamma"] * self.mlp(x, f"{key}.mlp", width)

    def attention_block(self, x, key, layer_norm):
        n, width, height, breadth = x.shape
        if layer_norm:
            y = np.moveaxis(self.layer_norm(np.moveaxis(x, 1, -1), f"{key}.norm", 1e-5), -1, 1)
        else:
            y = self.norm(x, f"{key}.norm")
        tokens = y.reshape(n, width, -1).transpose(0, 2, 1)
        qkv = tokens @ self.state[f"{key}.token_mixer.qkv.weight"].T
        out = np.zeros_like(tokens)
        for head in range(0, width, 32):
            q, k, v = (qkv[..., start + head : start + head + 32] for start in (0, width, 2 * width))
            out[..., head : head + 32] = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(32)) @ v
        out = self.linear(out, f"{key}.token_mixer.proj")
        out = out.transpose(0, 2, 1).reshape(n, width, height, breadth)
        x = x + self.state[f"{key}.layer_scale_1.gamma"] * out
        return x + self.state[f"{key}.layer_scale_2.gamma"] * self.mlp(x, f"{key}.mlp", width)


def fastvit_features(variant, state, frames):
    """`[n, 3, size, size]` to `[n, dim]`, with the train-time state."""
    net, widths = Branches(state), variant.widths()
    x = gelu(net.mobile_one(frames.astype(np.float64), "stem.0", 2))
    x = gelu(net.mobile_one(x, "stem.1", 2, widths[0]))
    x = gelu(net.mobile_one(x, "stem.2"))
    for stage, depth in enumerate(variant.depths):
        at = f"stages.{stage}"
        if stage:
            down = f"{at}.downsample.proj"
            groups = widths[stage - 1]
            x = sum(net.conv_norm(x, f"{down}.0.{size}_conv", 2, groups) for size in ("large", "small"))
            x = gelu(net.squeeze(x, f"{down}.0.se") if stage in variant.squeezed else x)
            x = gelu(net.mobile_one(x, f"{down}.1"))
        attends = stage >= len(widths) - variant.attention_stages
        if attends:
            x = x + net.conv(x, f"{at}.pos_emb.pos_enc", 1, 3, widths[stage])
        for block in range(depth):
            key = f"{at}.blocks.{block}"
            x = net.attention_block(x, key, variant.layer_norm) if attends else net.mixer_block(x, key)
    x = gelu(net.squeeze(net.mobile_one(x, "final_conv", 1, widths[-1]), "final_conv.se"))
    return net.linear(x.mean((2, 3)), "head.fc")
