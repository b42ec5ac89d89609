"""Arguments that several commands take, and how their text is read."""

import argparse
from pathlib import Path

RUN = "name of a run, or its folder"


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"received {text!r}; give a whole number") from None


def positive(text: str) -> int:
    """A number of at least 1."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"received {text}; give a number of at least 1")
    return number


def named_path(text: str) -> tuple[str, Path]:
    """NAME=PATH."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"received {text!r}; give NAME=PATH")
    return name, Path(path)


def add_device(command: argparse.ArgumentParser) -> None:
    """--device and --dtype; see engine/device.py, which is not imported here."""
    command.add_argument("--device", choices=("cpu", "cuda", "mps", "auto"), default="cpu", help="default cpu")
    command.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help="of weights (default float32)"
    )


def add_ray(command: argparse.ArgumentParser, what: str) -> None:
    """--ray; see cluster.py, which is not imported here."""
    command.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help=f"compute on a Ray cluster, {what} on each core or GPU; without ADDRESS on this machine alone",
    )
