"""Slow, obvious twins of the published networks: plain NumPy, nothing folded, nothing shared with graphs."""

import numpy as np


class Naive:
    """Layers by the names under which a checkpoint holds them."""

    def __init__(self, state):
        self.state = {key: np.asarray(value, np.float64) for key, value in state.items()}

    def conv(self, x, key, stride=1, pad=0, groups=1):
        weight = self.state[f"{key}.weight"]
        dims = weight.ndim - 2
        strides, pads = each(stride, dims), each(pad, dims)
        x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
        views = windows(x, weight.shape[2:], strides)
        parts = []
        inner, outer = weight.shape[1], weight.shape[0] // groups
        for group in range(groups):
            piece = views[:, group * inner : (group + 1) * inner]
            kernel = weight[group * outer : (group + 1) * outer].reshape(outer, -1)
            axes = np.moveaxis(piece, 1, 1 + dims)  # n, *positions, channels, *kernel
            flat = axes.reshape(*axes.shape[: 1 + dims], -1)
            parts.append(np.moveaxis(flat @ kernel.T, -1, 1))
        y = np.concatenate(parts, 1)
        bias = self.state.get(f"{key}.bias")
        return y if bias is None else y + bias.reshape(-1, *[1] * dims)

    def norm(self, x, key, epsilon=1e-5):
        shape = (-1, *[1] * (x.ndim - 2))
        part = {
            name: self.state[f"{key}.{name}"].reshape(shape) for name in ("weight", "bias", "running_mean")
        }
        spread = np.sqrt(self.state[f"{key}.running_var"] + epsilon).reshape(shape)
        return part["weight"] * (x - part["running_mean"]) / spread + part["bias"]

    def linear(self, x, key):
        bias = self.state.get(f"{key}.bias", 0.0)
        return x @ self.state[f"{key}.weight"].T + bias

    def layer_norm(self, x, key, epsilon):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return centred / spread * self.state[f"{key}.weight"] + self.state[f"{key}.bias"]


def each(value, dims):
    return [value] * dims if isinstance(value, int) else list(value)


def windows(x, kernel, stride):
    axes = tuple(range(2, x.ndim))
    views = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=axes)
    return views[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]


def pool(x, kernel, stride, pad=0, ceil=False, how=np.max):
    dims = x.ndim - 2
    kernel, stride, pad = each(kernel, dims), each(stride, dims), each(pad, dims)
    sides = []
    for size, k, s, p in zip(x.shape[2:], kernel, stride, pad, strict=True):
        more = -(size + 2 * p - k) % s if ceil else 0
        sides.append((p, p + more))
    x = np.pad(x, [(0, 0), (0, 0), *sides], constant_values=-np.inf if how is np.max else 0.0)
    return how(windows(x, kernel, stride), axis=tuple(range(-dims, 0)))


def relu(x):
    return np.maximum(x, 0.0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def resnet(net, config, x):
    x = relu(net.norm(net.conv(x, "conv1", 2, 3), "bn1"))
    x = pool(x, 3, 2, 0, ceil=True) if config.caffe else pool(x, 3, 2, 1)
    for stage, blocks in enumerate(config.layers, 1):
        for block in range(blocks):
            key, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            first, second = (stride, 1) if config.caffe else (1, stride)
            y = relu(net.norm(net.conv(x, f"{key}.conv1", first), f"{key}.bn1"))
            y = relu(net.norm(net.conv(y, f"{key}.conv2", second, 1, config.groups), f"{key}.bn2"))
            y = net.norm(net.conv(y, f"{key}.conv3"), f"{key}.bn3")
            if block == 0:
                x = net.norm(net.conv(x, f"{key}.downsample.0", stride), f"{key}.downsample.1")
            x = relu(x + y)
    return x.mean((2, 3))


def senet(net, config, x):
    for number, stride in ((1, 2), (2, 1), (3, 1)):
        x = relu(net.norm(net.conv(x, f"layer0.conv{number}", stride, 1), f"layer0.bn{number}"))
    x = pool(x, 3, 2, ceil=True)
    for stage, blocks in enumerate(config.layers, 1):
        for block in range(blocks):
            key, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = relu(net.norm(net.conv(x, f"{key}.conv1"), f"{key}.bn1"))
            y = relu(net.norm(net.conv(y, f"{key}.conv2", stride, 1, config.groups), f"{key}.bn2"))
            y = net.norm(net.conv(y, f"{key}.conv3"), f"{key}.bn3")
            gate = relu(net.conv(y.mean((2, 3), keepdims=True), f"{key}.se_module.fc1"))
            y = y * sigmoid(net.conv(gate, f"{key}.se_module.fc2"))
            if block == 0:
                pad = 0 if stage == 1 else 1
                x = net.norm(net.conv(x, f"{key}.downsample.0", stride, pad), f"{key}.downsample.1")
            x = relu(x + y)
    return x.mean((2, 3))


def densenet(net, config, x):
    x = pool(relu(net.norm(net.conv(x, "features.conv0", 2, 3), "features.norm0")), 3, 2, 1)
    for block, layers in enumerate(config.blocks, 1):
        for layer in range(1, layers + 1):
            key = f"features.denseblock{block}.denselayer{layer}"
            y = net.conv(relu(net.norm(x, f"{key}.norm1")), f"{key}.conv1")
            y = net.conv(relu(net.norm(y, f"{key}.norm2")), f"{key}.conv2", 1, 1)
            x = np.concatenate([x, y], 1)
        if block < len(config.blocks):
            key = f"features.transition{block}"
            x = pool(net.conv(relu(net.norm(x, f"{key}.norm")), f"{key}.conv"), 2, 2, how=np.mean)
    return relu(net.norm(x, "features.norm5")).mean((2, 3))


def r2plus1d(net, config, x):
    def split(x, key, stride):
        y = net.conv(x, f"{key}.0.0", (1, stride, stride), (0, 1, 1))
        y = net.conv(relu(net.norm(y, f"{key}.0.1", 1e-3)), f"{key}.0.3", (stride, 1, 1), (1, 0, 0))
        return net.norm(y, f"{key}.1", 1e-3)

    x = relu(net.norm(net.conv(x, "stem.0", (1, 2, 2), (0, 3, 3)), "stem.1", 1e-3))
    x = relu(net.norm(net.conv(x, "stem.3", 1, (1, 0, 0)), "stem.4", 1e-3))
    for stage, blocks in enumerate(config.layers, 1):
        for block in range(blocks):
            key, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = split(relu(split(x, f"{key}.conv1", stride)), f"{key}.conv2", 1)
            if stride == 2:
                x = net.norm(net.conv(x, f"{key}.downsample.0", 2), f"{key}.downsample.1", 1e-3)
            x = relu(x + y)
    return x.mean((2, 3, 4))


def s3d(net, config, x):
    def point(x, key):
        return relu(net.norm(net.conv(x, f"{key}.conv"), f"{key}.bn", 1e-3))

    def separate(x, key, half, stride):
        y = net.conv(x, f"{key}.conv_s", (1, stride, stride), (0, half, half))
        y = net.conv(relu(net.norm(y, f"{key}.bn_s", 1e-3)), f"{key}.conv_t", (stride, 1, 1), (half, 0, 0))
        return relu(net.norm(y, f"{key}.bn_t", 1e-3))

    x = pool(separate(x, "base.0", 3, 2), (1, 3, 3), (1, 2, 2), (0, 1, 1))
    x = pool(separate(point(x, "base.2"), "base.3", 1, 1), (1, 3, 3), (1, 2, 2), (0, 1, 1))
    places = {place for place, _ in config.mixed}
    for place in range(5, 16):
        key = f"base.{place}"
        if place == 7:
            x = pool(x, 3, 2, 1)
        elif place == 13:
            x = pool(x, 2, 2)
        elif place in places:
            x = np.concatenate(
                [
                    point(x, f"{key}.branch0.0"),
                    separate(point(x, f"{key}.branch1.0"), f"{key}.branch1.1", 1, 1),
                    separate(point(x, f"{key}.branch2.0"), f"{key}.branch2.1", 1, 1),
                    point(pool(x, 3, 1, 1), f"{key}.branch3.1"),
                ],
                1,
            )
    pairs = [x[:, :, t : t + 2].mean((2, 3, 4)) for t in range(x.shape[2] - 1)]
    return np.mean(pairs, axis=0)


def i3d(net, config, frames):
    def same(x, kernel, stride):
        sides = []
        for size, k, s in zip(x.shape[2:], kernel, stride, strict=True):
            total = max((-(-size // s) - 1) * s + k - size, 0)
            sides.append((total // 2, total - total // 2))
        return np.pad(x, [(0, 0), (0, 0), *sides])  # zeros are never larger than what a ReLU leaves

    def unit(x, key, stride=1):
        kernel = net.state[f"{key}.conv3d.weight"].shape[2:]
        y = net.conv(same(x, kernel, [stride] * 3), f"{key}.conv3d", stride)
        return relu(net.norm(y, f"{key}.bn", 1e-3))

    def largest(x, kernel, stride):
        return pool(same(x, kernel, stride), kernel, stride)

    x = (frames / 127.5 - 1).transpose(3, 0, 1, 2)[None]
    x = largest(unit(x, "Conv3d_1a_7x7", 2), (1, 3, 3), (1, 2, 2))
    x = largest(unit(unit(x, "Conv3d_2b_1x1"), "Conv3d_2c_3x3"), (1, 3, 3), (1, 2, 2))
    for block in ("3b", "3c", "4b", "4c", "4d", "4e", "4f", "5b", "5c"):
        key = f"Mixed_{block}"
        if block == "4b":
            x = largest(x, (3, 3, 3), (2, 2, 2))
        if block == "5b":
            x = largest(x, (2, 2, 2), (2, 2, 2))
        x = np.concatenate(
            [
                unit(x, f"{key}.b0"),
                unit(unit(x, f"{key}.b1a"), f"{key}.b1b"),
                unit(unit(x, f"{key}.b2a"), f"{key}.b2b"),
                unit(largest(x, (3, 3, 3), (1, 1, 1)), f"{key}.b3b"),
            ],
            1,
        )
    return np.mean([x[:, :, t : t + 2].mean((2, 3, 4)) for t in range(x.shape[2] - 1)], axis=0)


def vggish(net, config, x):
    for place, _ in config.layers:
        x = relu(net.conv(x, f"features.{place}", 1, 1))
        if place in (0, 3, 8, 13):
            x = pool(x, 2, 2)
    x = np.stack([image.transpose(1, 2, 0).ravel() for image in x])
    for place in (0, 2, 4):
        x = relu(net.linear(x, f"embeddings.{place}"))
    return x


def random_state(shapes, seed=0):
    """Weights of these shapes that neither vanish nor explode through many layers."""
    rng = np.random.default_rng(seed)
    state = {}
    for key, shape in shapes.items():
        if key.endswith("running_var"):
            value = rng.uniform(0.5, 1.5, shape)
        elif len(shape) == 1:
            value = rng.normal(0.5 if key.endswith("weight") else 0.0, 0.2, shape)
        else:
            value = rng.normal(0.0, np.sqrt(2 / max(np.prod(shape[1:]), 1)), shape)
        state[key] = value.astype(np.float32)
    return state
