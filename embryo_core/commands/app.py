"""`app`: the dashboard, opened from wherever Embryo is installed."""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from embryo_core.commands.arguments import whole

HELP = "open the dashboard in a server on this machine"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The port; all else of Streamlit is set in its own configuration and environment variables."""
    what = "where it listens (default: %(default)s)"
    command.add_argument("--port", type=whole, default=8501, metavar="N", help=what)


def execute(options: argparse.Namespace) -> int:
    """Become Streamlit with the installed app, so that what stops this process stops the server."""
    main = Path(find_spec("app").origin).with_name("main.py")
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(main), "--server.port", str(options.port)])
