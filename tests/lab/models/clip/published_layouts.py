"""The modules of the published CLIP2Video and TS2-Net programs, for the names and shapes of checkpoints.

Nothing here computes: attention is torch's own, and TS2-Net wraps it in the last two image blocks as `net`.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net


def block(width, heads, mlp=None):
    module = nn.Module()
    module.attn = nn.MultiheadAttention(width, heads)
    module.ln_1, module.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
    mlp = mlp or 4 * width
    steps = (("c_fc", nn.Linear(width, mlp)), ("gelu", nn.Identity()), ("c_proj", nn.Linear(mlp, width)))
    module.mlp = nn.Sequential(OrderedDict(steps))
    return module


def transformer(width, layers, heads):
    module = nn.Module()
    module.resblocks = nn.Sequential(*(block(width, heads) for _ in range(layers)))
    return module


def clip(config):
    vision, text = config.vision, config.text
    module, visual = nn.Module(), nn.Module()
    visual.conv1 = nn.Conv2d(3, vision.width, vision.patch, vision.patch, bias=False)
    visual.class_embedding = nn.Parameter(torch.randn(vision.width))
    visual.positional_embedding = nn.Parameter(
        torch.randn((vision.size // vision.patch) ** 2 + 1, vision.width)
    )
    visual.ln_pre, visual.ln_post = nn.LayerNorm(vision.width), nn.LayerNorm(vision.width)
    visual.transformer = transformer(vision.width, vision.depth, vision.heads)
    visual.proj = nn.Parameter(torch.randn(vision.width, config.dim))
    module.visual = visual
    module.transformer = transformer(text.width, text.depth, text.heads)
    module.token_embedding = nn.Embedding(text.vocabulary, text.width)
    module.positional_embedding = nn.Parameter(torch.randn(text.length, text.width))
    module.ln_final = nn.LayerNorm(text.width)
    module.text_projection = nn.Parameter(torch.randn(text.width, config.dim))
    module.logit_scale = nn.Parameter(torch.tensor(2.5))
    return module


def clip2video(config):
    dim, heads = config.backbone.dim, config.backbone.text.heads
    module = nn.Module()
    module.clip = clip(config.backbone)
    module.frame_position_embeddings = nn.Embedding(config.backbone.text.length, dim)
    module.transformerClip = transformer(dim, config.layers, heads)
    if config.difference == "mlp":
        module.frame2t_projection = nn.Parameter(torch.randn(dim, dim))
    else:
        module.frame2t_attention = transformer(dim, 1, heads)
    module.type_position_embeddings = nn.Embedding(2, dim)
    module.trans_layernorm = nn.LayerNorm(dim)
    module.weight_center = nn.Parameter(torch.randn(config.centres, dim))
    module.emb_center = nn.Parameter(torch.randn(config.centres, dim))
    module.actionClip = transformer(dim, 1, heads)
    return module


def token_scores(dim, bias):
    module, scores = nn.Module(), nn.Module()
    scores.in_conv = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim // 2, bias=bias), nn.GELU())
    steps = (nn.Linear(dim, dim // 2, bias=False), nn.GELU(), nn.Linear(dim // 2, 1, bias=False), nn.Tanh())
    scores.out_conv = nn.Sequential(*steps)
    module.score_predictor = scores
    return module


def ts2net(config):
    """With the two parts that the published program carries without using them."""
    dim, vision = config.backbone.dim, config.backbone.vision
    module = nn.Module()
    module.clip = clip(config.backbone)
    module.frame_position_embeddings = nn.Embedding(config.positions, dim)
    module.transformerClip = transformer(dim, config.layers, config.backbone.text.heads)
    prompts = nn.Module()
    prompts.conv1 = nn.Conv2d(3, vision.width, vision.patch, vision.patch, bias=False)
    prompts.positional_embedding = nn.Parameter(torch.randn(4, vision.width))
    prompts.layer_norm = nn.LayerNorm(vision.width)
    module.visual_prompt_encoder = prompts
    module.visual_token_selector = token_scores(dim, bias=False)
    module.text_token_selector = token_scores(dim, bias=True)
    for one in module.clip.visual.transformer.resblocks[-config.shifted :]:
        one.attn = Wrapped(one.attn)
    return module


LAYOUTS = {"clip2video": clip2video, "ts2net": ts2net}
