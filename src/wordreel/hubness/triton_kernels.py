# mypy: ignore-errors
"""The kernels of the fused fit: similarities live in registers and are gone when their tile is done.

A program owns a strip of gallery items and walks down a segment of the bank, tile by tile. Of a tile of
similarities `[TALL, WIDE]` it takes, before the next one,

- of each bank query the maximum, merged with the other strips by an atomic maximum of (similarity, strip);
  `winners` later looks the item up in that one strip;
- of each item and slot (a quarter of the tile's rows, those one thread holds) the running sum of exponentials
  and the two largest similarities. `select` lists the largest of the first; what a slot keeps back is at most
  its second, so `mend` knows the few slots where some of an item's largest met, and computes those again.

Written in the kernel language of Triton, which is compiled from this text; it is an optional package.
"""

from __future__ import annotations

try:
    import triton.language as tl
    from triton import jit

    READY = True
except ImportError:  # the file can be read without it, the kernels cannot be run
    READY, tl = False, None

    def jit(kernel):
        return kernel


@jit
def strips(
    bank,
    gallery,
    best,
    shifts,
    sums,
    tops,
    rows,
    count,
    start,
    tiles,
    scale,
    DIM: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    LOGSUM: tl.constexpr,
    TOP: tl.constexpr,
    PRECISION: tl.constexpr,
    NONE: tl.constexpr = -3e38,
):
    """`count` strips from number `start`; `tiles` to a segment; `scale` is β log₂e."""
    strip = tl.program_id(0) % count
    segment = (tl.program_id(0) // count).to(tl.int64)
    slots: tl.constexpr = TALL // 4
    some: tl.constexpr = TALL // 32
    first = segment.to(tl.int32) * tiles
    last = tl.minimum(first + tiles, tl.cdiv(rows, TALL))
    # NONE and not -inf, of which a difference would be NaN: the largest value is the shift of the sum too.
    one = tl.full((some, 8, WIDE), NONE, tl.float32)
    two = tl.full((some, 8, WIDE), NONE, tl.float32)
    total = tl.zeros((some, 8, WIDE), tl.float32)
    for tile in tl.range(first, last):
        block = tl.zeros((TALL, WIDE), tl.float32)
        for k in range(0, DIM, DEEP):
            left = bank.load([tile * TALL, k])
            right = gallery.load([strip * WIDE, k])
            block = tl.dot(left, right.T, block, input_precision=PRECISION)
        ids = tile * TALL + tl.arange(0, TALL)
        here = ids < rows
        # Integers in the order of the floats (+ 0.0 makes one zero of two); equal ones go to the lower strip.
        bits = (tl.max(block, 1) + 0.0).to(tl.int32, bitcast=True)
        key = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) << 32
        key = key | (0x7FFFFFFF - start - strip).to(tl.int64)
        # An old value read here costs at most an atomic operation that changes nothing.
        better = here & (key > tl.load(best + ids, mask=here, other=0))
        tl.atomic_max(best + ids, key, mask=better, sem="relaxed")
        if tile * TALL + TALL > rows:
            block = tl.where(here[:, None], block, -float("inf"))
        # Rows r, r + 8, r + TALL/2 and r + TALL/2 + 8 are in one thread, so that slots need no exchange.
        quarters = tl.permute(tl.reshape(block, (2, some, 2, 8, WIDE)), (1, 3, 4, 0, 2))
        even, odd = tl.split(quarters)
        a, b = tl.split(even)
        c, d = tl.split(odd)
        high_ab, high_cd = tl.maximum(a, b), tl.maximum(c, d)
        high = tl.maximum(high_ab, high_cd)
        if LOGSUM == 2:  # with the slot's maximum so far as the shift
            new = tl.maximum(one, high)
            total = total * tl.exp2((one - new) * scale)
            total += tl.exp2((a - new) * scale) + tl.exp2((b - new) * scale)
            total += tl.exp2((c - new) * scale) + tl.exp2((d - new) * scale)
        if LOGSUM == 1:  # where nothing can overflow or vanish
            total += tl.exp2(a * scale) + tl.exp2(b * scale)
            total += tl.exp2(c * scale) + tl.exp2(d * scale)
        if TOP:
            low = tl.maximum(tl.minimum(a, b), tl.minimum(c, d))
            low = tl.maximum(low, tl.minimum(high_ab, high_cd))
            two = tl.maximum(tl.maximum(two, low), tl.minimum(one, high))
        one = tl.maximum(one, high)
    columns = tl.full((), WIDE, tl.int64) * count
    at = strip * WIDE + tl.arange(0, WIDE)
    if LOGSUM == 2:
        peak = tl.max(tl.max(one, 0), 0)
        total *= tl.exp2((one - peak[None, None, :]) * scale)
        tl.store(shifts + segment * columns + at, peak)
    if LOGSUM:
        tl.store(sums + segment * columns + at, tl.sum(tl.sum(total, 0), 0))
    if TOP:
        slot = tl.arange(0, some)[:, None, None] * 8 + tl.arange(0, 8)[None, :, None]
        pointers = tops + (segment * 2 * slots + slot) * columns + at[None, None, :]
        tl.store(pointers, one)
        tl.store(pointers + slots * columns, two)


@jit
def select(
    tops,
    lists,
    bounds,
    columns,
    segments,
    SLOTS: tl.constexpr,
    KEEP: tl.constexpr,
    ITEMS: tl.constexpr,
    NONE: tl.constexpr = -3e38,
):
    """The KEEP largest of what an item's slots hold first, sorted, and a bound on what they keep back."""
    at = tl.program_id(0) * ITEMS + tl.arange(0, ITEMS)
    inside = (at < columns)[:, None]
    largest = tl.full((ITEMS, KEEP), NONE, tl.float32)
    second = tl.full((ITEMS, SLOTS), NONE, tl.float32)
    for segment in range(segments):
        slot = (segment * 2 * SLOTS + tl.arange(0, SLOTS)).to(tl.int64)
        pointers = tops + slot[None, :] * columns + at[:, None]
        one = tl.load(pointers, mask=inside, other=NONE)
        two = tl.load(pointers + tl.full((), SLOTS, tl.int64) * columns, mask=inside, other=NONE)
        second = tl.maximum(second, two)
        largest = tl.topk(tl.reshape(tl.join(largest, tl.topk(one, KEEP)), (ITEMS, 2 * KEEP)), KEEP)
    tl.store(lists + at.to(tl.int64)[:, None] * KEEP + tl.arange(0, KEEP)[None, :], largest, mask=inside)
    tl.store(bounds + at, tl.max(second, 1), mask=at < columns)


@jit
def mend(
    bank,
    gallery,
    tops,
    lists,
    bounds,
    rows,
    columns,
    segments,
    tiles,
    dim,
    width,
    TALL: tl.constexpr,
    DEEP: tl.constexpr,
    KEEP: tl.constexpr,
    RUN: tl.constexpr,
    NONE: tl.constexpr = -3e38,
):
    """Complete the list of an item some of whose width + 1 largest met in a slot, which has RUN rows."""
    item = tl.program_id(0).to(tl.int64)
    slots: tl.constexpr = TALL // 4
    index = tl.arange(0, KEEP)
    largest = tl.load(lists + item * KEEP + index)
    edge = tl.max(tl.where(index == width, largest, NONE), 0)
    if tl.load(bounds + item) > edge:
        for segment in range(segments):
            slot = tl.arange(0, slots)
            at = (segment * 2 * slots + slots + slot).to(tl.int64)
            second = tl.load(tops + at * columns + item)
            high = tl.max(second, 0)
            while high > edge:
                worst = tl.min(tl.where(second == high, slot, slots), 0)
                # The rows of this slot: four of every tile of the segment.
                number = tl.arange(0, RUN)
                own = number // 4
                inner = (number % 4 // 2) * (TALL // 2) + (worst // 8) * 16 + (number % 2) * 8 + worst % 8
                row = ((segment * tiles + own) * TALL + inner).to(tl.int64)
                here = (own < tiles) & (row < rows)
                product = tl.zeros((RUN, DEEP), tl.float32)
                for k in range(0, dim, DEEP):
                    depth = k + tl.arange(0, DEEP)
                    near = depth < dim
                    right = tl.load(gallery + item * dim + depth, mask=near, other=0).to(tl.float32)
                    spot = bank + row[:, None] * dim + depth[None, :]
                    left = tl.load(spot, mask=here[:, None] & near[None, :], other=0).to(tl.float32)
                    product += left * right[None, :]
                score = tl.where(here, tl.sum(product, 1), NONE)
                # Its largest is in the list already.
                first = tl.min(tl.where(score == tl.max(score, 0), number, RUN), 0)
                score = tl.where(number == first, NONE, score)
                best = tl.max(score, 0)
                while best > edge:
                    last = tl.min(tl.where((largest == edge) & (index <= width), index, KEEP), 0)
                    largest = tl.where(index == last, best, largest)
                    edge = tl.min(tl.where(index <= width, largest, float("inf")), 0)
                    first = tl.min(tl.where(score == best, number, RUN), 0)
                    score = tl.where(number == first, NONE, score)
                    best = tl.max(score, 0)
                second = tl.where(slot == worst, NONE, second)
                high = tl.max(second, 0)
        largest = tl.where(index <= width, largest, NONE)
        tl.store(lists + item * KEEP + index, tl.sort(largest, descending=True))


@jit
def winners(
    bank,
    gallery,
    best,
    ids,
    scores,
    items,
    start,
    count,
    dim,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
):
    """The best item of a bank query whose best strip is one of these `count` from number `start`."""
    row = tl.program_id(0).to(tl.int64)
    strip = (0x7FFFFFFF - (tl.load(best + row) & 0xFFFFFFFF)).to(tl.int32) - start
    if (strip >= 0) & (strip < count):
        at = strip * WIDE + tl.arange(0, WIDE)
        inside = at < items
        product = tl.zeros((WIDE, DEEP), tl.float32)
        for k in range(0, dim, DEEP):
            depth = k + tl.arange(0, DEEP)
            left = tl.load(bank + row * dim + depth, mask=depth < dim, other=0).to(tl.float32)
            pointers = gallery + at.to(tl.int64)[:, None] * dim + depth[None, :]
            right = tl.load(pointers, mask=inside[:, None] & (depth < dim)[None, :], other=0).to(tl.float32)
            product += left[None, :] * right
        score = tl.where(inside, tl.sum(product, 1), -float("inf"))
        top = tl.max(score, 0)
        tl.store(scores + row, top)
        tl.store(ids + row, start * WIDE + tl.min(tl.where(score == top, at, 0x7FFFFFFF), 0))
