"""The command line `python -m embryo_core COMMAND` (or `embryo COMMAND`), with the commands of commands/."""

import argparse
import platform
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import metadata
from typing import Any, TextIO

from embryo_core.commands.add import ADD, AUDIT
from embryo_core.commands.compare import COMPARE, FINDINGS
from embryo_core.commands.evaluate import EVALUATE
from embryo_core.commands.fetch import FETCH
from embryo_core.commands.finetune import FINETUNE
from embryo_core.commands.query import EXAMPLES, QUERY
from embryo_core.commands.runs import RUNS, TRUST
from embryo_core.commands.show import ANIMATE, APP, EXPORT, SITE
from embryo_core.errors import exit_status, printable

COMMANDS = (
    APP,
    ADD,
    AUDIT,
    EVALUATE,
    FINETUNE,
    FINDINGS,
    COMPARE,
    RUNS,
    TRUST,
    QUERY,
    EXAMPLES,
    ANIMATE,
    EXPORT,
    SITE,
    FETCH,
)
# Packages that matter in a bug report, in the order in which --version prints them.
REPORTED = "torch transformers tokenizers streamlit plotly pandas pyarrow numpy keras tensorflow-cpu tensorflow jax ray"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 if it succeeds, 1 if it reports problems, and on errors the status of `exit_status`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments[0] if arguments else "").parse_args(arguments)
    with redirect_stdout(_Plain(sys.stdout)):
        return exit_status(lambda: options.command(options), "what was written is kept")


class _Plain:
    """A stream that escapes control characters, with which texts of an untrusted run could control the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable(text, "\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def versions() -> str:
    """Return the versions of Embryo, Python and REPORTED (not imported), and the platform, one per line."""
    lines = [f"embryo {_version('embryo') or '(not installed)'}", f"python {platform.python_version()}"]
    lines += [f"{name} {version}" for name in REPORTED.split() if (version := _version(name))]
    return "\n".join([*lines, platform.platform()])


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class _PrintVersions(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(versions())
        parser.exit()


def _parser(requested: str) -> argparse.ArgumentParser:
    """Return a parser of all commands; only the requested one has arguments, since adding them may import packages."""
    parser = argparse.ArgumentParser(
        "python -m embryo_core",
        description="Show how a language model develops while it is pretrained.",
        epilog="COMMAND --help prints the options of a command, python -m pretrain --help those of pretraining.",
    )
    parser.add_argument("--version", action=_PrintVersions, nargs=0, help="print the versions of Embryo and packages")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        description = f"{command.help[0].upper()}{command.help[1:]}."
        subparser = commands.add_parser(command.name, help=command.help, description=description)
        subparser.set_defaults(command=command.execute)
        if command.name == requested:
            command.add_arguments(subparser)
    return parser
