"""`add` makes a run from checkpoints that other code wrote; `audit` looks for faulty checkpoints."""

import argparse
import sys

from embryo_core import runs
from embryo_core.commands.arguments import Command, add_run, whole
from embryo_core.errors import printable
from embryo_core.types import Run
from embryo_core.words import list_steps, name_step_range, quantity

MAX_LISTED = 8  # names or folders listed; further ones are counted


def add_source_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `add`: the source, the run's name, and how file names give the step."""
    command.epilog = (
        "Known names need no --pattern: checkpoint-N, stepN, chck_NM (words), pytorch_model_N.bin and others."
    )
    command.add_argument(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="a folder of checkpoints, hf:OWNER/NAME (its revisions, else its folders, else its commits), "
        "hf:OWNER/NAME-{step}k (a repository each), or a list of STEP:PATH or STEP:hf:OWNER/NAME/FOLDER@REVISION",
    )
    command.add_argument("--name", required=True, help="name of the run")
    command.add_argument("--steps", nargs="+", type=whole, metavar="STEP", help="steps to add (default: all)")
    command.add_argument(
        "--pattern",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="how a name gives the step: 'step{step}-tokens{tokens}B', 'chck_{words}M', 'ext{step+5000}'",
    )
    command.add_argument(
        "--tokenizer",
        metavar="FOLDER",
        help="tokenizer of checkpoints without one: a folder, or hf:OWNER/NAME@REVISION",
    )
    command.add_argument(
        "--seed",
        type=whole,
        help="seed of the pretraining (default: from the name of the source or run, else config.json)",
    )
    command.add_argument(
        "--copy", action="store_true", help="copy the weights into the run, shards joined into one file"
    )


def add_source(options: argparse.Namespace) -> int:
    """Make the run, print where its weights are and what was left out, and audit the checkpoints on disk."""
    from embryo_core.audit import audit  # torch takes seconds to import
    from embryo_core.sources import add

    where = options.source, options.name, options.steps, options.pattern
    added = add(*where, options.tokenizer, options.copy, options.seed)
    run, steps = added.run, added.steps
    counted = f"{quantity(len(steps), 'checkpoint')}, {name_step_range(steps[0], steps[-1], run.step_unit)}"
    print(f"{run.name}  {run.family}, {counted}  ({run.path})")
    print("Weights were copied from:" if options.copy else "Weights stay where they are, and are read there:")
    for location in added.locations[:MAX_LISTED]:
        print(f"    {location}")
    if more := added.locations[MAX_LISTED:]:
        print(f"    and {len(more):,} more")
    if added.kept:
        print(f"Unchanged: {list_steps(added.kept, run.step_unit)}.")
    if added.gone:
        gone = list_steps(added.gone, run.step_unit)
        print(f"Now without weights, because their files are gone or were not added here: {gone}.")
    if added.unmatched:
        names = ", ".join(map(printable, added.unmatched[:MAX_LISTED]))
        print(f"Not added, because their names do not match: {names} ({len(added.unmatched)} in all); see --pattern.")
    for remark in added.remarks:
        print(remark)
    for note in added.notes:
        print(f"Not added: {note}")
    for trouble in added.troubles:
        print(f"Left out: {trouble}", file=sys.stderr)
    report = audit(run, fetch=False, progress=True)
    print("\n".join(["Audit:", *audit_lines(report, run)]))
    if report.checkpoints < len(steps):
        print(f"The others are not fetched yet; to audit all of them, run: python -m embryo_core audit {run.name}")
    return 1 if added.troubles or report.faults else 0


def add_audit_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `audit`: the run, and whether to remove fetched weights again."""
    add_run(command)
    command.add_argument("--discard", action="store_true", help="afterwards delete weights fetched from the Hub")


def audit_run(options: argparse.Namespace) -> int:
    """Audit a run, and print each fault and the steps without weights; return 1 if there is a fault."""
    from embryo_core.audit import audit  # torch takes seconds to import

    run = runs.open_run(options.run)
    report = audit(run, discard=options.discard, progress=True)
    print("\n".join([*audit_lines(report, run), *runs.explain_missing_weights(runs.checkpoints(run))]))
    return 1 if report.faults else 0


def audit_lines(report: runs.Audit, run: Run) -> list[str]:
    """Return a line for each fault, a line with their number, and the reason if the run cannot be queried."""
    if not report.faults and not report.checkpoints:
        return ["Nothing was audited: no checkpoint has its weights here."]
    from embryo_core.audit import explain_unanswerable

    faults = quantity(len(report.faults), "fault") if report.faults else "No fault"
    count = f"{faults} in {quantity(report.checkpoints, 'checkpoint')}."
    return [
        *(f"{fault.kind}: {fault.what}" for fault in report.faults),
        count,
        *filter(None, [explain_unanswerable(run)]),
    ]


ADD = Command(
    "add",
    "make a run of checkpoints that you have: a Trainer's folder, any folders, or the Hub; they stay where they are",
    add_source_arguments,
    add_source,
)
AUDIT = Command(
    "audit",
    "look for checkpoints that are damaged, missing, equal, swapped, or hold a wrong tensor",
    add_audit_arguments,
    audit_run,
)
