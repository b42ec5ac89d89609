"""`app` opens the dashboard; `animate` saves a head's development as a file, `export` scores for other tools."""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN, Command, port, whole
from embryo_core.words import points, quantity


def add_app_arguments(command: argparse.ArgumentParser) -> None:
    """Add the port; Streamlit's own configuration and environment variables set everything else."""
    command.add_argument("--port", type=port, default=8501, metavar="N", help="default %(default)s")


def open_app(options: argparse.Namespace) -> int:
    """Replace this process by Streamlit with the installed app, so that a signal to it stops the server."""
    package = find_spec("app")
    assert package is not None and package.origin is not None, "app is installed with embryo_core"
    main = Path(package.origin).with_name("main.py")
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(main), "--server.port", str(options.port)])


def add_animate_arguments(command: argparse.ArgumentParser) -> None:
    """Add the run, the head, the colours and the file."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--layer", type=whole, required=True, metavar="N", help="1 is the lowest")
    command.add_argument("--head", type=whole, required=True, metavar="N", help="1 is the first")
    command.add_argument("--colours", choices=("linear", "log"), default="linear", help="scale (default linear)")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="head.gif or head.html")


def animate(options: argparse.Namespace) -> int:
    """Save the head's averaged maps over the steps, and print what the file shows."""
    from embryo_core.share import check_suffix, read_averaged, write_animation

    check_suffix(options.output)
    history = read_averaged(runs.open_run(options.run), options.layer, options.head)
    write_animation(history, options.output, options.colours)
    steps = history.steps
    span = points(steps[0], steps[-1], history.step_unit)
    print(f"{options.output}: {history.title}, {quantity(len(steps), 'checkpoint')}, {span}")
    return 0


def add_export_arguments(command: argparse.ArgumentParser) -> None:
    """Add the run, the form and the folder."""
    from embryo_core.share.trackers import FORMS

    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--to", choices=FORMS, required=True, help="what reads the files")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="a new or empty folder")


def export_scores(options: argparse.Namespace) -> int:
    """Write the scores, and print where."""
    from embryo_core.share.trackers import export

    print(f"Written: {export(runs.open_run(options.run), options.to, options.folder)}")
    return 0


APP = Command("app", "open the dashboard in a server on this machine", add_app_arguments, open_app)
ANIMATE = Command(
    "animate",
    "save the development of an attention head as a GIF or a web page",
    add_animate_arguments,
    animate,
)
EXPORT = Command(
    "export", "write the scores for TensorBoard, or as CSV or parquet", add_export_arguments, export_scores
)
