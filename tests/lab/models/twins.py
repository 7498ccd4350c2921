"""The published models written out slowly and plainly, under the names of their checkpoints.

One caption per row, one module per expert, loops instead of batched products; no masks except availability.
"""

import math

import torch
from torch import nn
from torch.nn.functional import glu, normalize, softmax


class Vlad(nn.Module):
    def __init__(self, dim, clusters, ghosts=0):
        super().__init__()
        self.kept = clusters
        self.clusters = nn.Parameter(torch.randn(dim, clusters + ghosts) / math.sqrt(dim))
        self.clusters2 = nn.Parameter(torch.randn(1, dim, clusters) / math.sqrt(dim))
        self.batch_norm = nn.BatchNorm1d(clusters + ghosts)

    def forward(self, x):
        many, count, dim = x.shape
        scores = self.batch_norm((x @ self.clusters).reshape(many * count, -1)).reshape(many, count, -1)
        rows = []
        for video in range(many):
            columns = []
            for cluster in range(self.kept):
                residual = torch.zeros(dim)
                for token in range(count):
                    share = softmax(scores[video, token], dim=0)[cluster]
                    residual = residual + share * (x[video, token] - self.clusters2[0, :, cluster])
                columns.append(normalize(residual, dim=0))
            rows.append(normalize(torch.stack(columns, dim=1).reshape(-1), dim=0))
        return torch.stack(rows)


class Context(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.batch_norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return glu(torch.cat((x, self.batch_norm(self.fc(x))), 1), 1)


class Unit(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.fc = nn.Linear(dim, out)
        self.cg = Context(out)

    def forward(self, x):
        return normalize(self.cg(self.fc(x)))


class PlainGate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cg = Context(dim)

    def forward(self, x):
        return normalize(self.cg(x))


class ReasonedContext(Context):
    def __init__(self, dim):
        super().__init__(dim)
        self.batch_norm2 = nn.BatchNorm1d(dim)

    def forward(self, x, attention):
        return x * torch.sigmoid(self.batch_norm(attention) + self.batch_norm2(self.fc(x)))


class ReasonedGate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cg = ReasonedContext(dim)

    def forward(self, x, attention):
        return normalize(self.cg(x, attention))


class Reduce(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.fc = nn.Linear(dim, out)

    def forward(self, x):
        return normalize(self.fc(x))


class Inner(nn.Module):
    """The part under `ce.` (or `mee.`)."""

    def __init__(self, kind, pooled, sizes, text, dim, layers=3):
        super().__init__()
        self.kind = kind
        self.moe_fc = nn.Linear(text, len(sizes))
        if kind == "moee":
            self.video_GU = nn.ModuleList(Unit(i, o) for i, o in zip(pooled, sizes, strict=True))
            self.text_GU = nn.ModuleList(Unit(text, o) for o in sizes)
            return
        self.video_dim_reduce = nn.ModuleList(Reduce(i, dim) for i in pooled)
        self.text_GU = nn.ModuleList(Unit(text, dim) for _ in pooled)
        if kind == "plain":
            self.video_GU = nn.ModuleList(PlainGate(dim) for _ in pooled)
            return
        self.video_GU = nn.ModuleList(ReasonedGate(dim) for _ in pooled)
        self.g_reason_1 = nn.Linear(2 * dim, dim)
        steps = []
        for _ in range(layers - 1):
            steps += [nn.BatchNorm1d(dim), nn.Mish(), nn.Linear(dim, dim)]
        self.g_reason_shared = nn.Sequential(*steps)

    def videos(self, pooled, available):
        if self.kind == "moee":
            return [layer(x) for layer, x in zip(self.video_GU, pooled, strict=True)]
        rows = [layer(x) for layer, x in zip(self.video_dim_reduce, pooled, strict=True)]
        for i, gate in enumerate(self.video_GU):
            if self.kind == "plain":
                rows[i] = gate(rows[i])
                continue
            total, count = 0, 0
            for j in range(len(rows)):
                both = (available[:, i] & available[:, j]).float()
                seen = self.g_reason_shared(self.g_reason_1(torch.cat((rows[i], rows[j]), 1)))
                total, count = total + seen * both[:, None], count + both
            rows[i] = gate(rows[i], total / (count + 1e-11)[:, None])
        return rows


class Net(nn.Module):
    """`experts`: (name, dim, clusters or 0, max_tokens); `own`: the outer names of MoEE's own code."""

    def __init__(self, kind, experts, text, dim, own=False):
        super().__init__()
        self.experts, self.inner_name = experts, "mee" if own else "ce"
        word, clusters, ghosts = text
        pools = {name: Vlad(size, k) for name, size, k, _ in experts if k}
        if own:
            for name, pool in pools.items():
                self.add_module(f"{name}_pooling", pool)
        else:
            self.pooling = nn.ModuleDict(pools)
        self.pools = dict(pools)
        self.text_pooling = Vlad(word, clusters, ghosts)
        pooled = [size * max(k, 1) for _, size, k, _ in experts]
        sizes = [size for _, size, _, _ in experts]
        self.add_module(self.inner_name, Inner(kind, pooled, sizes, word * clusters, dim))

    def forward(self, video, available, text):
        """`video`: arrays per expert, `[b, n, d]` zero-padded or `[b, d]`, to similarities `[q, b]`."""
        inner = getattr(self, self.inner_name)
        pooled = [
            self.pools[name](x) if k else x for (name, _, k, _), x in zip(self.experts, video, strict=True)
        ]
        rows = inner.videos(pooled, available)
        caption = self.text_pooling(text)
        queries = [layer(caption) for layer in inner.text_GU]
        weights = softmax(inner.moe_fc(caption), dim=1)
        found = torch.zeros(len(text), len(available))
        for q in range(len(text)):
            for v in range(len(available)):
                share = weights[q] * available[v]
                share = share / share.sum()
                found[q, v] = sum(share[m] * (queries[m][q] @ rows[m][v]) for m in range(len(rows)))
        return found


def stir(module):
    """Running statistics and norms that are not what a fresh module has."""
    for name, value in list(module.named_parameters()) + list(module.named_buffers()):
        if "running_var" in name:
            value.data.uniform_(0.5, 2)
        elif value.dtype.is_floating_point:
            value.data += 0.1 * torch.randn_like(value)
    return module.eval()
