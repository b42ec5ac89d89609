"""Time partial reads of stored attention against full reads: the maps of a step, and a head's weights on positions.

    python benchmarks/store.py [--steps 24] [--layers 6] [--heads 6] [--length 64]

Each partial read and the full read of the same numbers run in turn on one store of random maps. Other reads are printed
for comparison: one head at all steps, all scores, and the words with one tag at one step.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path

import numpy as np

from embryo_core import results
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.measurements import AttentionMap, Findings, Score, WordCount
from embryo_core.types import Checkpoint, Run

REPEATS = 20  # timed calls of each read
# numbers of tags, words and groups: about as in the test set of UD English EWT
TAG_COUNT, WORD_COUNT, GROUP_COUNT = 45, 9000, 20


def main() -> None:
    """Build a store, time the reads in turn, print medians and ratios."""
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
    """Write a compacted store of random maps, scores and words, and return its run."""
    run = Run(
        "random", root / "runs" / "random", "albert", "mlm+sop", {}, "0" * 64, {}, tuple(range(steps)), "benchmark"
    )
    rng = np.random.default_rng(0)
    tags = ["CC", *(f"T{i:02}" for i in range(1, TAG_COUNT))]
    tag_of = rng.integers(0, TAG_COUNT, WORD_COUNT)
    for step in range(steps):
        weights = rng.dirichlet(np.full(length, 0.1), size=(layers, heads, length)).astype(np.float32)
        maps = [AttentionMap(i + 1, j + 1, weights[i, j], 100) for i in range(layers) for j in range(heads)]
        scores = [Score("mask_prediction", rng.random(), 500, f"group {i}") for i in range(GROUP_COUNT)]
        words = [
            WordCount("mask_prediction", tags[tag_of[i]], f"word{i}", 3, int(rng.integers(0, 4)))
            for i in range(WORD_COUNT)
        ]
        checkpoint = Checkpoint(run, step, run.path / f"step{step}", sequences=step, tokens=step, manifest_mtime=0)
        results.write(checkpoint, "attention", Findings(attention=maps))
        results.write(checkpoint, "mask_prediction", Findings(scores=scores, words=words))
    results.compact(run)
    return run


def measure(run: Run, layer: int, head: int) -> None:
    """Time all reads in turn, so that other load on the machine affects all of them equally."""
    last = run.planned_steps[-1]
    readings: dict[str, Callable[[], object]] = {
        "all heads at one step": lambda: results.read_attention_step(run, last)[0],
        "the whole table, then that step": lambda: results.read_attention_steps(run)[1][-1],
        "a head's weights on positions": lambda: unwrap(results.read_position_weights)(run, layer, head)[[*POSITIONS]],
        "the head's maps, then the weights": lambda: position_weights(results.read_attention(run, layer, head).weights),
        "one head at all steps": lambda: results.read_attention(run, layer, head).weights,
        "all scores": lambda: unwrap(results.read_scores)(run),
        "words of one tag at one step": lambda: unwrap(results.read_words)(run, "mask_prediction", "conjunction", last),
    }
    arrays = [readings[name]() for name in list(readings)[:4]]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    np.testing.assert_array_equal(arrays[2], arrays[3])
    seconds: dict[str, list[float]] = {name: [] for name in readings}
    for _ in range(REPEATS):
        for name, read in readings.items():
            start = time.perf_counter()
            read()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) * 1000 for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{median:8.1f}  {name}")
    step, table, weights, maps = list(medians.values())[:4]
    print(f"One step is read {table / step:.1f} times as fast as the whole table,", end=" ")
    print(f"weights on positions {maps / weights:.1f} times as fast as the maps that they are of.")


if __name__ == "__main__":
    main()
