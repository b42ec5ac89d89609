"""`site` writes a static site of runs: the dashboard's figures without a server."""

import argparse
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN, Command, positive
from embryo_core.errors import SiteError, file_reason
from embryo_core.words import quantity


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the runs, the folder, and what the first page says."""
    command.add_argument("runs", metavar="RUN", nargs="*", help=RUN)
    command.add_argument("--runs-from", type=Path, metavar="FOLDER", help="also all runs in this folder")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="new, empty, or a site")
    command.add_argument("--title", default="Embryo", help="of the site (default %(default)s)")
    command.add_argument(
        "--live",
        type=positive,
        default=0,
        metavar="N",
        help="let visitors ask N checkpoints of each run (needs npm once)",
    )
    command.add_argument("--note", type=Path, metavar="FILE.md", help="Markdown for the first page")


def execute(options: argparse.Namespace) -> int:
    """Write the site, and print where and how much of it is new."""
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
    found = [path.parent for path in folder.glob("*/run.json")]
    if not found:
        raise SiteError(f"{folder} holds no run; name a folder whose folders have a run.json.")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise SiteError(f"The note {path} cannot be read ({file_reason(reason)}); give a text file in UTF-8.") from None


SITE = Command("site", "write a static site of runs: the dashboard's figures without a server", add_arguments, execute)
