"""`animate`: a head's development as a file."""

import argparse
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN, whole
from embryo_core.words import points, quantity

HELP = "the development of one attention head, as a GIF or a web page"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The head, the colours and the file."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--layer", type=whole, required=True, metavar="N", help="1 is the lowest")
    command.add_argument("--head", type=whole, required=True, metavar="N", help="1 is the first")
    command.add_argument("--colours", choices=("linear", "log"), default="linear", help="scale (default linear)")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="head.gif or head.html")


def execute(options: argparse.Namespace) -> int:
    """Write the file, and tell what is in it."""
    from embryo_core.share import check_suffix, read_averaged, write_animation

    check_suffix(options.output)
    history = read_averaged(runs.open_run(options.run), options.layer, options.head)
    write_animation(history, options.output, options.colours)
    steps = history.steps
    span = points(steps[0], steps[-1], history.step_unit)
    print(f"{options.output}: {history.title}, {quantity(len(steps), 'checkpoint')}, {span}")
    return 0
