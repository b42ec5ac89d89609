"""How much faster one head's history is read from attention.parquet than by reading the whole table.

    python benchmarks/store.py [--steps 24] [--layers 6] [--heads 6] [--length 64]

Both readings run side by side on the same store of random maps, in turn, and give the same numbers. Also printed, for
the size of the store: all heads at one step, all scores, and the words behind one tag at one step.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from embryo_core import results
from embryo_core.types import AttentionMap, Checkpoint, Findings, Run, Score, WordCount

REPEATS = 20
TAGS, WORDS, GROUPS = 45, 9000, 20  # as the test set of UD English EWT has them, about


def main() -> None:
    """Build a store, time the readings in turn, print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("steps", 24), ("layers", 6), ("heads", 6), ("length", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    size = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = build(Path(folder), size.steps, size.layers, size.heads, size.length)
        megabytes = (run.results / "attention.parquet").stat().st_size / 1e6
        print(
            f"{size.steps} steps, {size.layers} layers, {size.heads} heads, {size.length} x {size.length} weights: ",
            end="",
        )
        print(f"attention.parquet has {megabytes:.1f} MB; medians of {REPEATS}, in ms")
        measure(run, size.layers // 2 + 1, size.heads // 2 + 1)


def build(root: Path, steps: int, layers: int, heads: int, length: int) -> Run:
    """A compacted store of random maps, scores and words."""
    run = Run(
        "random", root / "runs" / "random", "albert", "mlm+sop", {}, "0" * 64, {}, tuple(range(steps)), "benchmark"
    )
    rng = np.random.default_rng(0)
    tags = ["CC", *(f"T{i:02}" for i in range(1, TAGS))]
    tag_of = rng.integers(0, TAGS, WORDS)
    for step in range(steps):
        weights = rng.dirichlet(np.full(length, 0.1), size=(layers, heads, length)).astype(np.float32)
        maps = [AttentionMap(i + 1, j + 1, weights[i, j], 100) for i in range(layers) for j in range(heads)]
        scores = [Score("mask_prediction", rng.random(), 500, f"group {i}") for i in range(GROUPS)]
        words = [
            WordCount("mask_prediction", tags[tag_of[i]], f"word{i}", 3, int(rng.integers(0, 4)))
            for i in range(WORDS)
        ]
        checkpoint = Checkpoint(run, step, run.path / f"step{step}", sequences=step, tokens=step, written=0)
        results.write(checkpoint, "attention", Findings(attention=maps))
        results.write(checkpoint, "mask_prediction", Findings(scores=scores, words=words))
    results.compact(run)
    return run


def measure(run: Run, layer: int, head: int) -> None:
    """Time all readings in turn, so that what else the machine does falls on each alike."""
    last = run.planned_steps[-1]
    readings: dict[str, Callable[[], object]] = {
        "one head at all steps": lambda: results.read_attention(run, layer, head).weights,
        "the whole table, then that head": lambda: results.read_attention_steps(run)[1][:, layer - 1, head - 1],
        "all heads at one step": lambda: results.read_attention_step(run, last),
        "all scores": lambda: results.read_scores(run),
        "words of one tag at one step": lambda: results.read_words(run, "mask_prediction", "conjunction", last),
    }
    one, other = (readings[name]() for name in list(readings)[:2])
    np.testing.assert_array_equal(one, other)
    seconds: dict[str, list[float]] = {name: [] for name in readings}
    for _ in range(REPEATS):
        for name, read in readings.items():
            start = time.perf_counter()
            read()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) * 1000 for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{median:8.1f}  {name}")
    history, whole = list(medians.values())[:2]
    print(f"One head's history is read {whole / history:.1f} times as fast as the whole table.")


if __name__ == "__main__":
    main()
