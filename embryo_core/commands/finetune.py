"""`finetune` fine-tunes the checkpoints of a run on GLUE, SQuAD and the user's own tasks."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embryo_core import runs
from embryo_core.commands.arguments import Command, add_ray, add_run, named_path, positive, whole
from embryo_core.errors import CorpusError, unknown
from embryo_core.finetune.task_specs import GLUE, SQUAD, is_task_name
from embryo_core.types import Run
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.evaluation import Report


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `finetune`: tasks and data, steps and seeds, protocol, and where to compute."""
    command.usage = "%(prog)s RUN [options]"
    add_run(command)
    command.add_argument("--tasks", nargs="+", metavar="TASK", help="tasks (default: all whose data are given)")
    command.add_argument(
        "--steps", nargs="+", type=whole, metavar="STEP", help="checkpoints to fine-tune (default: all)"
    )
    command.add_argument("--seeds", type=positive, default=1, metavar="N", help="seeds 1 to N (default 1)")
    command.add_argument(
        "--protocol",
        choices=("quick", "paper"),
        default="quick",
        help="quick (default): 2 epochs, a learning rate chosen once on training data; or paper: its settings",
    )
    add_folders(command)
    command.add_argument(
        "--task", type=named_path, action="append", default=[], metavar="NAME=FOLDER", help="your own task"
    )
    command.add_argument(
        "--device", metavar="NAME", help="device: cpu, cuda, cuda:1, ... (default: the first GPU, else cpu)"
    )
    command.add_argument(
        "--jobs", type=positive, metavar="N", help="fine-tunings at once (default: one for each core, one on a GPU)"
    )
    add_ray(command, "a fine-tuning")
    command.add_argument("--overwrite", action="store_true", help="recompute results that exist")


def add_folders(command: argparse._ActionsContainer) -> None:
    """Add --glue and --squad."""
    glue = "folder of GLUE: cola/, sst2/, ... with parquet files"
    command.add_argument("--glue", type=Path, metavar="FOLDER", help=glue)
    command.add_argument("--squad", type=Path, metavar="FOLDER", help="folder of SQuAD 1.1 or 2.0")


def execute(options: argparse.Namespace) -> int:
    """Fine-tune a run, and print what was done and what failed; return the exit status."""
    names = ("steps", "seeds", "protocol", "device", "jobs", "ray", "overwrite")
    settings = {name: getattr(options, name) for name in names}
    return finetune_and_report(runs.open_run(options.run), _folders(options), **settings)


def finetune_and_report(run: Run, folders: Mapping[str, Path], **settings: Any) -> int:
    """Fine-tune on the tasks in these folders, print the report, and return the exit status.

    Settings and errors are the same as for `finetuning.finetune`.
    """
    from embryo_core.finetune.finetuning import finetune  # torch and transformers take seconds to import

    report = finetune(run, folders, **settings, progress=True)
    return print_report(run, report, f"{quantity(report.computed, 'fine-tuning')} done")


def print_report(run: Run, report: "Report", done: str) -> int:
    """Print a report that begins with the text `done`: results, remarks and failures; return 1 if anything failed."""
    print(f"{done}, {report.done_before:,} done before; results are in {run.results}.")
    for remark in report.remarks:
        print(f"Note: {remark}")
    for failure in report.failures:
        print(f"Failed: {failure}", file=sys.stderr)
    return 1 if report.failures else 0


def glue_folders(folder: Path) -> dict[str, Path]:
    """Return the subfolder of each task of GLUE that a folder has. Raises CorpusError if it has none."""
    state = "holds no folder named" if folder.is_dir() else "is not a folder, so it holds none of"
    folders = {name: folder / name for name in GLUE if (folder / name).is_dir()}
    if not folders:
        raise CorpusError(
            f"No task has data: {folder} {state} {', '.join(GLUE)}; give --glue FOLDER, --squad FOLDER "
            "or --task NAME=FOLDER."
        )
    return folders


def _folders(options: argparse.Namespace) -> dict[str, Path]:
    """Return the data folder of each requested task. Raises CorpusError."""
    named, tasks = dict(options.task), [*GLUE, SQUAD]
    if len(named) < len(options.task):
        raise CorpusError("Two tasks of your own have the same name; give each a different name.")
    for name in named:
        if name in tasks or not is_task_name(name):
            raise CorpusError(
                f"A task of your own cannot be named '{name}'; choose letters, digits, '_' and '-', and none of "
                f"{', '.join(tasks)}."
            )
    fetched = runs.data_folder("corpora")
    glue, squad = options.glue or fetched / "glue", options.squad or fetched / SQUAD
    if options.tasks is None:
        others = named | ({SQUAD: squad} if options.squad or squad.is_dir() else {})
        return glue_folders(glue) | others if options.glue or glue.is_dir() or not others else others
    folders = {name: glue / name for name in GLUE} | {SQUAD: squad} | named
    for name in options.tasks:
        if name not in folders:
            raise CorpusError(unknown("task", name, folders, "Give a task of your own with --task NAME=FOLDER."))
    return {name: folders[name] for name in folders if name in options.tasks or name in named}


FINETUNE = Command(
    "finetune",
    "fine-tune the checkpoints of a run on downstream tasks; existing results are kept",
    add_arguments,
    execute,
)
