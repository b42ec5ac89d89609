"""The command line: python -m embryo_core COMMAND; every command is a file in commands/."""

import argparse
import sys
from collections.abc import Sequence

from embryo_core.commands import (
    add,
    animate,
    app,
    audit,
    compare,
    evaluate,
    examples,
    fetch,
    findings,
    finetune,
    query,
    runs,
)
from embryo_core.errors import exit_status

COMMANDS = (
    app,
    add,
    audit,
    evaluate,
    finetune,
    findings,
    compare,
    runs,
    query,
    examples,
    animate,
    fetch,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 1 done but for what is reported, 2 an error, 130 stopped with Ctrl-C.

    What ended a command is one sentence on stderr.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments[0] if arguments else "").parse_args(arguments)
    return exit_status(lambda: options.command(options), "what was written stays")


def _parser(asked: str) -> argparse.ArgumentParser:
    """All commands, and the arguments of the one that is asked for: those of others may take imports that are slow."""
    parser = argparse.ArgumentParser(
        "python -m embryo_core", description="Evaluate and query the checkpoints of a run."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        command = commands.add_parser(name, help=module.HELP)
        command.set_defaults(command=module.execute)
        if name == asked:
            module.add_arguments(command)
    return parser
