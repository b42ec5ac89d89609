"""`app` starts the dashboard, `animate` saves a head's development, `export` scores, and `site` a static site."""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN, Command, add_run, port, positive, whole
from embryo_core.errors import SiteError, file_reason
from embryo_core.words import name_step_range, quantity


def add_app_arguments(command: argparse.ArgumentParser) -> None:
    """Add the argument of `app`, --port; all else is set by Streamlit's configuration and environment variables."""
    command.add_argument(
        "--port", type=port, default=8501, metavar="N", help="port of the dashboard (default %(default)s)"
    )


def open_app(options: argparse.Namespace) -> int:
    """Replace this process by Streamlit with the installed app, so that signals to the process reach the server."""
    package = find_spec("app")
    assert package is not None and package.origin is not None, "app is installed with embryo_core"
    main = Path(package.origin).with_name("main.py")
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(main), "--server.port", str(options.port)])


def add_animate_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `animate`: run, layer, head, colour scale and file."""
    add_run(command)
    command.add_argument("--layer", type=whole, required=True, metavar="N", help="layer, counted from 1, the lowest")
    command.add_argument("--head", type=whole, required=True, metavar="N", help="head, counted from 1")
    command.add_argument("--colours", choices=("linear", "log"), default="linear", help="colour scale (default linear)")
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="file to write, .gif or .html"
    )


def animate(options: argparse.Namespace) -> int:
    """Save the averaged maps of a head over the steps as a GIF or page, and print what the file shows."""
    from embryo_core.share import Animation, check_suffix, read_averaged

    check_suffix(options.output)
    history = read_averaged(runs.open_run(options.run), options.layer, options.head)
    Animation(history, options.colours).save(options.output)
    steps = history.steps
    span = name_step_range(steps[0], steps[-1], history.step_unit)
    print(f"{options.output}: {history.title}, {quantity(len(steps), 'checkpoint')}, {span}")
    return 0


def add_export_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`: run, form and folder."""
    from embryo_core.share.trackers import FORMATS

    add_run(command)
    command.add_argument("--to", choices=FORMATS, required=True, help="format of the files")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="a new or empty folder")


def export_scores(options: argparse.Namespace) -> int:
    """Export the scores and print their path."""
    from embryo_core.share.trackers import export

    print(f"Written: {export(runs.open_run(options.run), options.to, options.folder)}")
    return 0


def add_site_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `site`: runs, folder, title, note, and the number of live checkpoints."""
    command.add_argument("runs", metavar="RUN", nargs="*", help=RUN)
    command.add_argument("--runs-from", type=Path, metavar="FOLDER", help="folder whose runs are added to RUN")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder of the site: new, empty, or an earlier site",
    )
    command.add_argument("--title", default="Embryo", help="title of the site (default %(default)s)")
    command.add_argument(
        "--live",
        type=positive,
        default=0,
        metavar="N",
        help="let visitors ask N checkpoints of each run (needs npm once)",
    )
    command.add_argument("--note", type=Path, metavar="FILE.md", help="Markdown file to show on the first page")


def write_static_site(options: argparse.Namespace) -> int:
    """Write the site; print its path, its size, and the number of views that were drawn anew."""
    from embryo_core.site import write_site

    names = [*options.runs, *(sorted(map(str, _folders(options.runs_from))) if options.runs_from else ())]
    if not names:
        raise SiteError("A site needs a run, or a folder of runs: python -m embryo_core site RUN -o FOLDER")
    chosen = list({run.path.resolve(): run for run in map(runs.open_run, names)}.values())
    note = _read(options.note) if options.note else ""
    made = write_site(chosen, options.output, options.title, note, options.live)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file()) / 1e6
    print(
        f"{options.output / 'index.html'}: {quantity(len(chosen), 'run')}, {size:.1f} MB, {len(made)} views drawn again"
    )
    return 0


def _folders(folder: Path) -> list[Path]:
    folders = [path.parent for path in folder.glob("*/run.json")]
    if not folders:
        raise SiteError(f"{folder} holds no run; name a folder whose folders have a run.json.")
    return folders


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise SiteError(f"The note {path} cannot be read ({file_reason(reason)}); give a text file in UTF-8.") from None


APP = Command("app", "start the dashboard's server on this machine", add_app_arguments, open_app)
ANIMATE = Command(
    "animate",
    "save the development of an attention head as a GIF or a web page",
    add_animate_arguments,
    animate,
)
EXPORT = Command(
    "export", "write the scores for TensorBoard, or as CSV or parquet", add_export_arguments, export_scores
)
SITE = Command(
    "site",
    "write a static site of runs: the dashboard's figures without a server",
    add_site_arguments,
    write_static_site,
)
