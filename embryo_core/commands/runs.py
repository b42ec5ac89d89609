"""`runs`: the runs at hand and what has been computed for them; one of them thinned."""

import argparse
import re
import sys

from embryo_core import runs
from embryo_core.errors import EmbryoError, RunError
from embryo_core.types import Run
from embryo_core.words import point, points, quantity

HELP = "list the runs and what has been computed for them, or thin one"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Which run is thinned, and what of it stays; without them, runs are listed."""
    command.add_argument("--thin", metavar="RUN", help="list the weights that would go, checkpoint by checkpoint")
    command.add_argument(
        "--keep",
        nargs="+",
        type=_kept,
        metavar="WHAT",
        help="with --thin: the checkpoints that keep their weights: steps, every:N, log:K (nearest to K per doubling)",
    )
    command.add_argument("--yes", action="store_true", help="with --thin: remove these weights; results always stay")


def execute(options: argparse.Namespace) -> int:
    """Thin a run, or list all of them."""
    return _thin(options) if options.thin or options.keep or options.yes else _list()


def _list() -> int:
    found, troubles = runs.list_runs(), [reason for _, reason in runs.broken_runs()]
    if not found:
        folders = " or ".join(str(root / "runs") for root in runs.roots())
        print(f"No run in {folders}; start one with: python -m pretrain tiny --corpus PATH --run data/runs/NAME")
    for run in found:
        checkpoints = runs.checkpoints(run)
        span = "no checkpoint"
        if checkpoints:
            steps = [checkpoint.step for checkpoint in checkpoints]
            span = f"{quantity(len(steps), 'checkpoint')}, {points(steps[0], steps[-1], run.step_unit)}"
        if thinned := sum(not checkpoint.has_weights for checkpoint in checkpoints):
            span += f", {thinned} without weights"
        print(f"{run.name}  {run.family}, {span}  ({run.path})")
        troubles += [reason for _, reason in runs.broken(run)] + _tell_contents(run)
    for trouble in troubles:
        print(f"Broken: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


def _thin(options: argparse.Namespace) -> int:
    """List what goes, with its size; remove it only when told to."""
    if not (options.thin and options.keep):
        raise RunError("Thinning needs a run and what stays: python -m embryo_core runs --thin RUN --keep every:1000")
    run = runs.open_run(options.thin)
    going = runs.to_remove(run, options.keep)
    for checkpoint, size in going:
        print(f"{point(checkpoint.step, run.step_unit)}: weights, {size / 1e6:,.1f} MB")
        if options.yes:
            runs.remove_weights(checkpoint)
    size = sum(size for _, size in going) / 1e6
    total = f"{size:,.1f} MB in {len(going):,} of {quantity(len(runs.checkpoints(run)), 'checkpoint')}"
    if options.yes:
        print(f"Removed: {total}.")
    else:
        print(f"Nothing was removed yet; the same command with --yes frees {total}.")
    return 0


def _tell_contents(run: Run) -> list[str]:
    """Print what has been computed for a run and what is missing from its log; returns what cannot be read."""
    from embryo_core import results

    def tell_results() -> None:
        done = results.done(run)
        for metric in results.read_sources(run):
            print(f"    {metric}: {quantity(len(done[metric]), 'step')}")

    def tell_log() -> None:
        if damaged := runs.damaged_lines(run):
            print(f"    log.jsonl: {quantity(damaged, 'damaged line')} left out")

    troubles = []
    for tell in (tell_results, tell_log):
        try:
            tell()
        except EmbryoError as error:
            troubles.append(str(error))
    return troubles


def _kept(text: str) -> str:
    if not re.fullmatch(r"\d{1,18}|(every|log):[1-9]\d{0,17}", text):
        raise argparse.ArgumentTypeError(f"received {text!r}; give a step, every:N or log:K")
    return text
