"""The class `Command`, and the arguments that several commands share."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

RUN = "name of a run, or its folder"


class Command(NamedTuple):
    """A command: name, line of help, a function that adds its arguments, and one that runs it, returning the status."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]


def whole(text: str) -> int:
    """Parse an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"received {text!r}; give a whole number") from None


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"received {text}; give a number of at least 1")
    return number


def port(text: str) -> int:
    """Parse a port number, from 1 to 65535."""
    number = whole(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"received {text}; give a port from 1 to 65535")
    return number


def named_path(text: str) -> tuple[str, Path]:
    """Parse NAME=PATH as (name, path)."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"received {text!r}; give NAME=PATH")
    return name, Path(path)


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the argument RUN."""
    command.add_argument("run", metavar="RUN", help=RUN)


def add_device(command: argparse.ArgumentParser) -> None:
    """Add --device and --dtype (embryo_core/engine/device.py reads them)."""
    command.add_argument(
        "--device", choices=("cpu", "cuda", "mps", "auto"), default="cpu", help="device to compute on (default cpu)"
    )
    command.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="dtype of the weights (default float32)",
    )


def add_ray(command: argparse.ArgumentParser, purpose: str) -> None:
    """Add --ray (embryo_core/evaluation/cluster.py reads it)."""
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"compute on the Ray cluster at this address (HOST:PORT), {purpose} on each core or GPU",
    )
