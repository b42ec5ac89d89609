"""`runs` lists runs and their results, or removes weights (`--thin`); `trust` records the hashes of a run's files."""

import argparse
import re
import sys
import textwrap
from collections import defaultdict

from embryo_core import runs
from embryo_core.commands.arguments import Command, add_run
from embryo_core.errors import EmbryoError, RunError
from embryo_core.types import Run
from embryo_core.words import name_step, name_step_range, quantity


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `runs`: a run to thin, and which weights to keep. Without them, all runs are listed."""
    command.add_argument("--thin", metavar="RUN", help="list the weights that would be removed, by checkpoint")
    command.add_argument(
        "--keep",
        nargs="+",
        type=_kept,
        metavar="WHAT",
        help="with --thin: the checkpoints that keep their weights: steps, every:N, log:K (nearest to K per doubling)",
    )
    command.add_argument("--yes", action="store_true", help="with --thin: remove these weights; results always stay")


def execute(options: argparse.Namespace) -> int:
    """Remove weights of a run (--thin), or list all runs; return the exit status."""
    return _thin(options) if options.thin or options.keep or options.yes else _list()


def trust(options: argparse.Namespace) -> int:
    """Add the hashes of a run's files to the list of trusted files, and print the list's path."""
    run = runs.read_run(runs.find_run(options.run))
    path, files = runs.trust_files(run)
    print(f"{run.name}: the hashes of {quantity(files, 'file')} are in {path}, for a server with EMBRYO_TRUSTED=listed")
    return 0


def _list() -> int:
    """Print each run with its checkpoints and results; return 1 if any run or checkpoint is broken."""
    listed, troubles = runs.list_runs(), [reason for _, reason in runs.broken_runs()]
    if not listed:
        folders = " or ".join(str(root / "runs") for root in runs.roots())
        print(f"No run found in {folders}; start one with: python -m pretrain tiny --corpus PATH --run data/runs/NAME")
    for run in listed:
        checkpoints = runs.checkpoints(run)
        span = "no checkpoint"
        if checkpoints:
            steps = [checkpoint.step for checkpoint in checkpoints]
            span = f"{quantity(len(steps), 'checkpoint')}, {name_step_range(steps[0], steps[-1], run.step_unit)}"
        if thinned := sum(not checkpoint.has_weights for checkpoint in checkpoints):
            span += f", {thinned} without weights"
        print(f"{run.name}  {run.family}, {span}  ({run.path})")
        troubles += [reason for _, reason in runs.broken_checkpoints(run)] + _print_contents(run)
    for trouble in troubles:
        print(f"Broken: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


def _thin(options: argparse.Namespace) -> int:
    """Print the weights to remove, with their sizes; remove them only with --yes."""
    if not (options.thin and options.keep):
        example = "python -m embryo_core runs --thin RUN --keep every:1000"
        raise RunError(f"Thinning needs a run and the checkpoints to keep: {example}")
    run = runs.open_run(options.thin)
    removed = runs.checkpoints_to_remove(run, options.keep)
    for checkpoint, size in removed:
        print(f"{name_step(checkpoint.step, run.step_unit)}: weights, {size / 1e6:,.1f} MB")
        if options.yes:
            runs.remove_weights(checkpoint)
    megabytes = sum(size for _, size in removed) / 1e6
    total = f"{megabytes:,.1f} MB in {len(removed):,} of {quantity(len(runs.checkpoints(run)), 'checkpoint')}"
    if options.yes:
        print(f"Removed: {total}.")
    else:
        print(f"Nothing was removed yet; the same command with --yes frees {total}.")
    return 0


def _print_contents(run: Run) -> list[str]:
    """Print which metrics a run has and how many lines of its log are damaged; return a sentence for each error."""
    from embryo_core import results

    troubles = []
    try:
        done, named = results.steps_by_metric(run), defaultdict(list)
        for metric in results.read_sources(run):
            named[len(done[metric])].append(metric)
        for count in sorted(named, reverse=True):
            line = f"{quantity(count, 'step')}: {', '.join(named[count])}"
            print(textwrap.fill(line, 100, initial_indent="    ", subsequent_indent=" " * 8))
    except EmbryoError as error:
        troubles.append(str(error))
    try:
        if damaged := runs.damaged_lines(run):
            print(f"    log.jsonl: {quantity(damaged, 'damaged line')} left out")
    except EmbryoError as error:
        troubles.append(str(error))
    return troubles


def _kept(text: str) -> str:
    if not re.fullmatch(r"\d{1,18}|(every|log):[1-9]\d{0,17}", text):
        raise argparse.ArgumentTypeError(f"received {text!r}; give a step, every:N or log:K")
    return text


RUNS = Command("runs", "list the runs and their results, or remove weights of one", add_arguments, execute)
TRUST = Command("trust", "allow a hosted dashboard to show a run, while its files stay unchanged", add_run, trust)
