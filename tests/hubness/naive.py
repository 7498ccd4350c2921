"""The methods again, slow and obvious: float64, plain loops and whole sorts, straight from the formulas."""

import math

import numpy as np


def log_mean_exp(values, beta):
    """(1/β) log mean exp(β x), shifted by the maximum."""
    top = max(values)
    return top + math.log(sum(math.exp(beta * (x - top)) for x in values) / len(values)) / beta


def columns(matrix):
    return [[float(x) for x in column] for column in np.asarray(matrix, np.float64).T]


def order(row, k=None):
    """Item numbers, best first, the lower number first among equals."""
    return sorted(range(len(row)), key=lambda v: (-float(row[v]), v))[:k]


def activation(bank, k=1):
    return {v for row in bank for v in order(row, k)}


def inverted_softmax(rows, bank, beta):
    soft = [log_mean_exp(column, beta) for column in columns(bank)]
    return np.array([[float(s) - b for s, b in zip(row, soft, strict=True)] for row in rows])


def dynamic_inverted_softmax(rows, bank, beta, k=1):
    active, corrected = activation(bank, k), inverted_softmax(rows, bank, beta)
    opened = [order(row, 1)[0] in active for row in rows]
    scores = [corrected[i] if opened[i] else np.asarray(rows[i], np.float64) for i in range(len(rows))]
    return np.array(scores), opened


def dual_inverted_softmax(rows, bank, gallery, beta, gallery_beta):
    one, two = inverted_softmax(rows, bank, beta), inverted_softmax(rows, gallery, gallery_beta)
    return (beta * one + gallery_beta * two) / (beta + gallery_beta)


def dual_dynamic_inverted_softmax(rows, bank, gallery, beta, gallery_beta, k=1):
    one, two = inverted_softmax(rows, bank, beta), inverted_softmax(rows, gallery, gallery_beta)
    both = dual_inverted_softmax(rows, bank, gallery, beta, gallery_beta)
    active, gallery_active = activation(bank, k), activation(gallery, k)
    scores = []
    for i, row in enumerate(rows):
        top = order(row, 1)[0]
        if top in active and top in gallery_active:
            scores.append(both[i])
        elif top in active:
            scores.append(one[i])
        elif top in gallery_active:
            scores.append(two[i])
        else:
            scores.append(np.asarray(row, np.float64))
    return np.array(scores)


def mean_of_largest(values, k):
    best = sorted((float(x) for x in values), reverse=True)[:k]
    return sum(best) / len(best)


def csls(rows, bank, k):
    near = [mean_of_largest(column, k) for column in columns(bank)]
    out = []
    for row in rows:
        own = mean_of_largest(row, k)
        out.append([2 * float(s) - own - r for s, r in zip(row, near, strict=True)])
    return np.array(out)


def nnn(rows, bank, k, alpha):
    near = [mean_of_largest(column, k) for column in columns(bank)]
    return np.array([[float(s) - alpha * r for s, r in zip(row, near, strict=True)] for row in rows])


def centring(rows, bank):
    means = [sum(column) / len(column) for column in columns(bank)]
    return np.array([[float(s) - m for s, m in zip(row, means, strict=True)] for row in rows])


def gc_keys(rows, bank):
    """(rank from the item's side, similarity) of each pair."""
    return [
        [
            (1 + sum(b > float(s) for b in column), float(s))
            for s, column in zip(row, columns(bank), strict=True)
        ]
        for row in rows
    ]


def sinkhorn(rows, bank, beta, rounds, extra=None):
    wide = np.asarray(bank, np.float64)
    if extra is not None:
        wide = np.hstack([wide, np.asarray(extra, np.float64)])
    g = [0.0] * wide.shape[1]
    for _ in range(rounds):
        f = [-log_mean_exp([s + gv for s, gv in zip(row, g, strict=True)], beta) for row in wide]
        g = [-log_mean_exp([s + fj for s, fj in zip(column, f, strict=True)], beta) for column in wide.T]
    return np.array([[float(s) + gv for s, gv in zip(row, g, strict=False)] for row in rows])


def dual_softmax(rows, beta):
    """s · softmax over the rows, as it is printed; only for small β · s."""
    s = np.asarray(rows, np.float64)
    e = np.exp(beta * (s - s.max(axis=0)))
    return s * e / e.sum(axis=0)


def k_occurrence(rows, k):
    counts = [0] * len(rows[0])
    for row in rows:
        for v in order(row, k):
            counts[v] += 1
    return counts


def gini(counts):
    n, total = len(counts), sum(counts)
    return sum(abs(a - b) for a in counts for b in counts) / (2 * n * total)


def skewness(counts):
    mean = sum(counts) / len(counts)
    second = sum((c - mean) ** 2 for c in counts) / len(counts)
    third = sum((c - mean) ** 3 for c in counts) / len(counts)
    return third / second**1.5 if second else 0.0
