"""Steps at which a checkpoint is to be saved, or kept."""

from math import log2


def step_grid(total: int, every: int) -> tuple[int, ...]:
    """Steps at which to save: 0, powers of two, then every `every` updates, and the last one."""
    powers = {2**k for k in range(total.bit_length()) if 2**k < min(every, total)}
    return tuple(sorted({0, total} | powers | set(range(every, total, every))))


def log_grid(total: int, per_doubling: int) -> tuple[int, ...]:
    """Steps from 1 to `total` whose ratios are equal, but for rounding: so many per doubling."""
    if per_doubling >= total:  # neighbours are less than 1 apart
        return tuple(range(1, total + 1))
    last = int(log2(total) * per_doubling)
    return tuple(sorted({round(2 ** (i / per_doubling)) for i in range(last + 1)}))
