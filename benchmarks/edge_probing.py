"""Time edge probing of one checkpoint by our procedure and by the paper's, and compare F1.

    python -m benchmarks.edge_probing RUN --probing PATH [--step N] [--tasks TASK ...] [--layers N ...]

Ours probes all tasks in all layers, with control tasks, and its time includes reading the data. The paper's procedure
(benchmarks/paper_probing.py) repeats everything for each task and layer, without control tasks. It runs in full for the
given tasks and layers (default: the last layer), and its time is extrapolated to all layers.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.paper_probing import PaperProbe, PaperProbing
from embryo_core import corpora, runs
from embryo_core.engine.device import parallel_passes
from embryo_core.engine.model import load
from embryo_core.measurements import Findings
from embryo_core.metric import Limits
from embryo_core.metrics.edge_probing import TASKS, EdgeProbing


def main() -> int:
    """Print a line per task and layer, the total seconds of both procedures, and their ratio; return 0."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable_checkpoints(run, None if options.step is None else [options.step])[-1]
    model, metric = load(checkpoint), EdgeProbing()
    tasks = [task for task in TASKS if task in options.tasks and (options.probing / task).is_dir()]
    layers = options.layers or [model.num_layers]
    print(f"{run.name}, step {checkpoint.step}, {parallel_passes()} cores, torch {torch.__version__}")

    start = time.perf_counter()
    defaults = {option.name: option.default for option in metric.options}
    data = metric.read(model.tokenizer, Limits.for_model(model), corpora.open_source(options.probing, **defaults))
    middle = time.perf_counter()
    findings = metric.compute(model, data)
    our_seconds = time.perf_counter() - start
    print(f"ours: {our_seconds:.1f} s, of which reading {middle - start:.1f} s (once for all checkpoints)", flush=True)

    # the paper's procedure splits each matrix product among the cores; ours runs one probe on each core
    torch.set_num_threads(parallel_passes())
    paper, total = PaperProbing(checkpoint.path, run.tokenizer), 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for task in tasks:
            probes = {layer: paper.probe(options.probing / task, layer, Path(scratch)) for layer in layers}
            for layer, probe in probes.items():
                _print(task, layer, probe, findings)
            seconds = sum(probe.features_seconds + probe.training_seconds for probe in probes.values())
            total += seconds / len(layers) * (model.num_layers + 1)
    print(f"paper: {total:.0f} s for {model.num_layers + 1} layers of {', '.join(tasks)}", end="")
    print(f", from {len(layers)} of them   ratio {total / our_seconds:.1f}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.edge_probing")
    parser.add_argument("run")
    parser.add_argument("--probing", type=Path, required=True)
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--layers", nargs="+", type=int, help="0 is the embeddings; default: the last layer")
    return parser.parse_args()


def _print(task: str, layer: int, paper: PaperProbe, findings: Findings) -> None:
    our_score = next(s for s in findings.scores if (s.metric, s.group, s.layer) == ("edge_probing_f1", task, layer))
    print(
        f"{task:12} layer {layer:2}   F1 ours {our_score.value:.4f}   paper {paper.f1:.4f}   "
        f"paper: features {paper.features_seconds:6.1f} s, {paper.batches:6,} batches {paper.training_seconds:6.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
