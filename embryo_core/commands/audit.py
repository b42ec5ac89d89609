"""`audit`: checkpoints that are not what they are said to be."""

import argparse

from embryo_core import runs
from embryo_core.commands.arguments import RUN

HELP = "look for checkpoints that are damaged, missing, equal, swapped, or hold a wrong tensor"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The run."""
    command.add_argument("run", metavar="RUN", help=RUN)


def execute(options: argparse.Namespace) -> int:
    """Audit, and print a line for each fault."""
    from embryo_core.engine.measure import audit  # torch takes seconds to import

    run = runs.open_run(options.run)
    faults = audit(run, progress=True)
    for fault in faults:
        print(f"step {fault.step}: {fault.what} ({fault.kind})")
    count = len(runs.checkpoints(run))
    print(f"{len(faults)} faults in {count} checkpoints." if faults else f"No fault in {count} checkpoints.")
    return 1 if faults else 0
