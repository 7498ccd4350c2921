"""CLIP2Video and TS2-Net in NumPy, one video, frame, token and attention head at a time, by published names.

Videos come as lists of frames, with a list of masks. The published programs spread the masks of a batch
over attention heads before they reshape to one row per video and head: CLIP4Clip (since 26 July 2021) and
TS2-Net repeat each mask for every head of its video (`repeat_interleave`), CLIP2Video tiles the whole list
(`repeat`).
A twin of the papers has `released=False` and videos without padding.
"""

from __future__ import annotations

import math

import numpy as np
from tests.lab.models.clip import slow_clip as slow

erf = np.vectorize(math.erf)


def gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def repeated(masks, heads):
    """A mask for each video and head, as `repeat_interleave` orders them."""
    return [mask for mask in masks for _ in range(heads)]


def tiled(masks, heads):
    """The same as `repeat` orders them."""
    return [mask for _ in range(heads) for mask in masks]


def masked(masks, video, heads, spread):
    """What attention over the tokens of a video adds to a score; `spread` is `repeated` or `tiled`."""
    rows = spread(masks, heads)

    def added(head, _, key):
        return 0.0 if rows[video * heads + head][key] else -1e6

    return added


def enhanced(videos, masks, state, at, layers, heads, released):
    """Frames plus blocks `at` over the frames and their differences, video by video."""
    places, types = state["frame_position_embeddings.weight"], state["type_position_embeddings.weight"]
    later, spread = [mask[1:] for mask in masks], tiled if released else repeated
    all_tokens, all_masks = [], []
    for video, frames in enumerate(videos):
        between = [frames[t + 1] - frames[t] for t in range(len(frames) - 1)]
        if between and "frame2t_projection" in state:
            between = [d @ state["frame2t_projection"] for d in between]
        elif between:
            x = np.stack([d + places[t + 1] for t, d in enumerate(between)])
            added = masked(later, video, heads, spread)
            between = slow.blocks(x, state, "frame2t_attention", 1, heads, 1e-12, added)
        if len(between):
            between = 2 * slow.sigmoid(slow.norm(np.stack(between), state, "trans_layernorm", 1e-5)) - 1
        tokens, real = [], []
        for t, frame in enumerate(frames):
            tokens.append(frame + places[t] + types[1])
            real.append(masks[video][t])
            if t + 1 < len(frames):
                tokens.append(between[t] + places[t] + types[0])
                real.append(masks[video][t] and (released or masks[video][t + 1]))
        all_tokens.append(np.stack(tokens))
        all_masks.append(real)
    out = []
    for video, frames in enumerate(videos):
        added = masked(all_masks, video, heads, spread)
        x = slow.blocks(all_tokens[video], state, at, layers, heads, 1e-12, added)
        out.append([x[2 * t] + frame for t, frame in enumerate(frames)])
    return out


def aligned(tokens, state):
    rows = []
    for k in range(len(state["emb_center"])):
        total = 0.0
        for x in tokens:
            scores = np.exp(state["weight_center"] @ x)
            total = total + scores[k] / scores.sum() * (x - state["emb_center"][k])
        rows.append(slow.unit(total))
    return slow.unit(np.mean(rows, axis=0))


def clip2video_videos(videos, masks, state, layers, heads, released=False):
    """(global, aligned) of each video, from the embeddings of its frames."""
    whole = enhanced(videos, masks, state, "transformerClip", layers, heads, released)
    some = [frames[::2] for frames in videos]
    second = enhanced(some, [mask[::2] for mask in masks], state, "actionClip", 1, heads, released)
    out = []
    for video, frames in enumerate(videos):
        mask = masks[video]
        tokens = [x for x, real in zip(frames, mask, strict=True) if real]
        tokens += [x for x, real in zip(second[video], mask[::2], strict=True) if real]
        pooled = slow.mean_head([x for x, real in zip(whole[video], mask, strict=True) if real])
        out.append((pooled, aligned(tokens, state)))
    return out


def shifted_tokens(pictures, clip, depth, heads, shifted, lengths=None):
    """The projected tokens of each frame; the last `shifted` blocks read shifted ones.

    A neighbour counts if it is among the first `lengths` frames.
    """
    lengths = len(pictures) if lengths is None else lengths
    xs = []
    for picture in pictures:
        patches = slow.patches_2d(picture, clip["visual.conv1.weight"])
        x = (
            np.concatenate([clip["visual.class_embedding"][None], patches])
            + clip["visual.positional_embedding"]
        )
        xs.append(slow.norm(x, clip, "visual.ln_pre", 1e-5))
    count = len(xs[0])
    step = max(1, count // 7)
    for number in range(depth):
        at = f"visual.transformer.resblocks.{number}"
        inner = [slow.norm(x, clip, f"{at}.ln_1", 1e-5) for x in xs]
        read = [one.copy() for one in inner]
        if number >= depth - shifted:
            for frame in range(len(xs)):
                for n in range(1, count, step):
                    if 0 < frame <= lengths:
                        read[frame][n] = inner[frame - 1][n]
                for n in range(4, count, step):
                    if frame + 1 < min(lengths, len(xs)):
                        read[frame][n] = inner[frame + 1][n]
        for frame, x in enumerate(xs):
            x = x + slow.attention(read[frame], clip, f"{at}.attn", heads, lambda head, i, j: 0.0)
            hidden = slow.norm(x, clip, f"{at}.ln_2", 1e-5) @ clip[f"{at}.mlp.c_fc.weight"].T
            hidden = slow.quick_gelu(hidden + clip[f"{at}.mlp.c_fc.bias"])
            xs[frame] = x + hidden @ clip[f"{at}.mlp.c_proj.weight"].T + clip[f"{at}.mlp.c_proj.bias"]
    return [slow.norm(x, clip, "visual.ln_post", 1e-5) @ clip["visual.proj"] for x in xs]


def chosen_tokens(tokens, state, k):
    """The class token and the k patches with the best scores, in their order."""
    at = "visual_token_selector.score_predictor"
    hidden = gelu(slow.norm(tokens, state, f"{at}.in_conv.0", 1e-5) @ state[f"{at}.in_conv.1.weight"].T)
    scores = []
    for one in hidden:
        inner = gelu(state[f"{at}.out_conv.0.weight"] @ np.concatenate([one, hidden[0]]))
        scores.append(math.tanh(float(state[f"{at}.out_conv.2.weight"][0] @ inner)))
    best = sorted(range(1, len(tokens)), key=lambda n: -scores[n])[:k]
    return [tokens[0], *(tokens[n] for n in sorted(best))]


def ts2net_videos(tokens, masks, state, layers, heads, k, released=False):
    """(frame states, which count) of each video, from the tokens of its frames."""
    each = 1 + k
    flat = [[x for frame in video for x in chosen_tokens(frame, state, k)] for video in tokens]
    if released:
        real = [[mask[n % len(mask)] for n in range(each * len(mask))] for mask in masks]
    else:
        real = [[bit for bit in mask for _ in range(each)] for mask in masks]
    out = []
    for video, rows in enumerate(flat):
        x = np.stack(rows)
        placed = x + state["frame_position_embeddings.weight"][: len(x)]
        added = masked(real, video, heads, repeated)
        x = x + slow.blocks(placed, state, "transformerClip", layers, heads, 1e-12, added)
        out.append(([x[n] for n in range(0, len(x), each)], real[video][::each]))
    return out


def ts2net_similarity(text, frames, mask):
    cosines = [slow.unit(text) @ slow.unit(x) for x, real in zip(frames, mask, strict=True) if real]
    length = math.sqrt(sum(c * c for c in cosines))
    weights = [math.exp(4 * c / length) for c in cosines]
    return sum(w * c for w, c in zip(weights, cosines, strict=True)) / sum(weights)
