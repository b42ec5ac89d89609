"""`add`: a run of checkpoints that others wrote."""

import argparse
import sys

from embryo_core import runs
from embryo_core.commands.arguments import whole
from embryo_core.commands.audit import lines
from embryo_core.words import listed, points, quantity

LISTED = 8  # names on a line, or lines of places; of the rest the number

HELP = "make a run of checkpoints at hand: a Trainer's folder, any folders, the Hub; they stay where they are"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The source, the name, and how names give the step."""
    command.epilog = "Known names need no --pattern: checkpoint-N, stepN, global_stepN, pytorch_model_N.bin and others."
    command.add_argument(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="a folder of checkpoints, hf:OWNER/NAME (its revisions), hf:OWNER/NAME-{step}k (a repository each), or a "
        "list of STEP:PATH or STEP:hf:OWNER/NAME@REVISION",
    )
    command.add_argument("--name", required=True, help="of the run")
    command.add_argument("--steps", nargs="+", type=whole, metavar="STEP", help="default: every step there is")
    command.add_argument(
        "--pattern",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="how a name tells the step: 'step{step}-tokens{tokens}B', 'chck_{words}M', 'ext{step+5000}'",
    )
    command.add_argument("--tokenizer", metavar="FOLDER", help="the tokenizer, where the checkpoints have none")
    command.add_argument("--copy", action="store_true", help="copy the weights into the run, several parts as one file")


def execute(options: argparse.Namespace) -> int:
    """Add the run, tell where its weights are and what was passed over, and audit what is at hand."""
    from embryo_core.audit import audit  # torch takes seconds to import
    from embryo_core.sources import add

    added = add(options.source, options.name, options.steps, options.pattern, options.tokenizer, options.copy)
    run, steps = added.run, added.steps
    counted = f"{quantity(len(steps), 'checkpoint')}, {points(steps[0], steps[-1], run.step_unit)}"
    print(f"{run.name}  {run.family}, {counted}  ({run.path})")
    print("Weights were copied from:" if options.copy else "Weights stay where they are, and are read there:")
    for location in added.locations[:LISTED]:
        print(f"    {location}")
    if more := added.locations[LISTED:]:
        print(f"    and {len(more):,} more")
    if added.kept:
        print(f"As they were before: {listed(added.kept, run.step_unit)}.")
    if added.gone:
        gone = listed(added.gone, run.step_unit)
        print(f"Without weights from now on, as their files are gone or were not added here: {gone}.")
    if added.left_alone:
        names = ", ".join(map(runs.shown, added.left_alone[:LISTED]))
        print(
            f"Not taken, as their names are of another form: {names} ({len(added.left_alone)} in all); see --pattern."
        )
    for trouble in added.troubles:
        print(f"Left out: {trouble}", file=sys.stderr)
    found = audit(run, fetch=False, progress=True)
    print("\n".join(["Audit:", *lines(found)]))
    if found.checkpoints < len(steps):
        print(f"The others are not fetched yet; to look at all: python -m embryo_core audit {run.name}")
    return 1 if added.troubles or found.faults else 0
