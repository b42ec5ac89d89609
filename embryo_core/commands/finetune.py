"""`finetune`: the checkpoints of a run on GLUE, SQuAD and tasks of one's own."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN, named_path, positive
from embryo_core.commands.fetch import CORPORA
from embryo_core.errors import CorpusError, unknown

HELP = "fine-tune the checkpoints of a run on downstream tasks; what is done is skipped"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The tasks and their data, the steps and seeds, the protocol, and what computes."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--tasks", nargs="+", metavar="TASK", help="default: all whose data are given")
    command.add_argument("--steps", nargs="+", type=int, metavar="STEP", help="default: every checkpoint")
    command.add_argument("--seeds", type=positive, default=1, metavar="N", help="seeds 1 to N (default 1)")
    command.add_argument(
        "--protocol",
        default="quick",
        help="quick (default): 2 epochs, a learning rate chosen once on training data; or paper: its settings",
    )
    command.add_argument(
        "--glue", type=Path, default=CORPORA / "glue", metavar="FOLDER", help="folder of cola/, sst2/, ... with parquet"
    )
    command.add_argument(
        "--squad", type=Path, default=CORPORA / "squad", metavar="FOLDER", help="SQuAD 1.1 or 2.0: train, validation"
    )
    command.add_argument(
        "--task", type=named_path, action="append", default=[], metavar="NAME=FOLDER", help="a task of your own"
    )
    command.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, ... (default: the first GPU, else cpu)")
    command.add_argument(
        "--jobs", type=positive, metavar="N", help="fine-tunings at once (default: one for each core, one on a GPU)"
    )
    command.add_argument("--overwrite", action="store_true", help="compute again what is done")


def execute(options: argparse.Namespace) -> int:
    """Fine-tune, and tell what was done, and what failed."""
    run = runs.open_run(options.run)
    from embryo_core.finetune.finetuning import finetune  # torch and transformers take seconds to import

    report = finetune(
        run,
        _folders(options),
        options.steps,
        seeds=options.seeds,
        protocol=options.protocol,
        device=options.device,
        jobs=options.jobs,
        overwrite=options.overwrite,
        progress=True,
    )
    print(f"{report.computed} fine-tunings done, {report.done_before} were done before; results are in {run.results}.")
    for failure in report.failures:
        print(f"Failed: {failure}", file=sys.stderr)
    return 1 if report.failures else 0


def _folders(options: argparse.Namespace) -> dict[str, Path]:
    """The folder of each task that is asked for. Raises CorpusError."""
    from embryo_core.finetune.forms import GLUE, SQUAD

    own = dict(options.task)
    _check_names(own, [*GLUE, SQUAD], len(options.task))
    folders = {name: options.glue / name for name in GLUE} | {SQUAD: options.squad} | own
    if options.tasks is None:
        found = {name: folder for name, folder in folders.items() if folder.is_dir() or name in own}
        if not found:
            raise CorpusError(
                f"No task has data: {options.glue} holds no folder named {', '.join(GLUE)}; give --glue FOLDER, "
                "--squad FOLDER or --task NAME=FOLDER."
            )
        return found
    for name in options.tasks:
        if name not in folders:
            raise CorpusError(unknown("task", name, folders, "One of your own is given with --task NAME=FOLDER."))
    return {name: folders[name] for name in folders if name in options.tasks or name in own}


def _check_names(own: Iterable[str], known: Iterable[str], given: int) -> None:
    """Raise CorpusError for an own task that is given twice, or under the name of another."""
    if len(set(own)) < given:
        raise CorpusError("A task of your own is given twice; give each a name of its own.")
    for name in own:
        if name in known or not name.replace("-", "").replace("_", "").isalnum():
            raise CorpusError(
                f"A task of your own cannot be named '{name}'; choose letters, digits, '_' and '-', and none of "
                f"{', '.join(known)}."
            )
