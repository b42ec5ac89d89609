"""`audit`: checkpoints that are not what they are said to be."""

import argparse

from embryo_core import runs
from embryo_core.commands.arguments import RUN
from embryo_core.words import quantity

HELP = "look for checkpoints that are damaged, missing, equal, swapped, or hold a wrong tensor"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The run, and what becomes of weights that are fetched."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--discard", action="store_true", help="remove again what is fetched from the Hub")


def execute(options: argparse.Namespace) -> int:
    """Audit, and print each fault, and the steps that have no weights to look at: status 1 where there is a fault."""
    from embryo_core.audit import audit  # torch takes seconds to import

    run = runs.open_run(options.run)
    found = audit(run, discard=options.discard, progress=True)
    print("\n".join([*lines(found), *runs.left_out(runs.checkpoints(run))]))
    return 1 if found.faults else 0


def lines(found: runs.Audit) -> list[str]:
    """What an audit came to: a line each, and how many."""
    faults = quantity(len(found.faults), "fault") if found.faults else "No fault"
    count = f"{faults} in {quantity(found.checkpoints, 'checkpoint')}."
    return [*(f"{fault.kind}: {fault.what}" for fault in found.faults), count]
