"""Command line of pretraining: python -m pretrain PRESET --corpus PATH... --run NAME; import PATH; measure RUN."""

import argparse
import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from embryo_core import runs
from embryo_core.errors import BrokenRun, BusyRun, ConfigError, exit_status
from embryo_core.types import Checkpoint, Run
from pretrain import continued
from pretrain.config import Config
from pretrain.families import preset, presets
from pretrain.settings import add_options, apply_options

if TYPE_CHECKING:
    from pretrain.batches import Data

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of `python -m pretrain PRESET`."""
    parse = argparse.ArgumentParser(
        prog="python -m pretrain",
        usage="%(prog)s PRESET --corpus PATH [PATH ...] --run NAME [options]",
        description="Pretrain a language model and keep its checkpoints. "
        "The same command again resumes where it stopped.",
        epilog="python -m pretrain import -h: checkpoints of the original albert, bert and electra as a run; "
        "python -m pretrain measure -h: measure the checkpoints of a run again.",
    )
    parse.add_argument("preset", metavar="PRESET", help=f"one of: {', '.join(presets())}")
    parse.add_argument(
        "--corpus", nargs="+", required=True, metavar="PATH", help="text: files, folders, or hf:NAME:CONFIG"
    )
    parse.add_argument(
        "--heldout", nargs="+", default=[], metavar="PATH", help="held-out text to measure on (default: none)"
    )
    _add_run(parse)
    parse.add_argument(
        "--init-from",
        metavar="CHECKPOINT",
        help="checkpoint to continue from as a new run: RUN, RUN@STEP or a folder; --steps counts from there",
    )
    parse.add_argument(
        "--several-hosts", action="store_true", help="JAX: this is one of several processes of a job (docs/clusters.md)"
    )
    add_options(parse)
    parse.add_argument(
        "--cache",
        type=Path,
        default=runs.data_folder("cache"),
        metavar="FOLDER",
        help="folder of prepared corpora (default: %(default)s)",
    )
    parse.add_argument("--tensorboard", action="store_true", help="also write TensorBoard events to FOLDER/tensorboard")
    return parse


def import_parser() -> argparse.ArgumentParser:
    """Return the argument parser of `python -m pretrain import`."""
    parse = argparse.ArgumentParser(
        prog="python -m pretrain import",
        description="Make a run of checkpoints that google-research's albert, bert or electra wrote with TensorFlow 1.",
    )
    parse.add_argument("path", type=Path, metavar="PATH", help="checkpoint model.ckpt-N, or a folder of checkpoints")
    _add_run(parse)
    parse.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="spiece.model or vocab.txt (default: the one next to the checkpoint)",
    )
    parse.add_argument("--cased", action="store_true", help="the vocabulary is cased")
    return parse


def measure_parser() -> argparse.ArgumentParser:
    """Return the argument parser of `python -m pretrain measure`."""
    parse = argparse.ArgumentParser(
        prog="python -m pretrain measure",
        description="Measure the checkpoints of a pretrained run again: on its own held-out text, which adds to the "
        "held-out rows of its log, or on other text, which is only printed.",
    )
    parse.add_argument("--run", required=True, metavar="NAME", help="name of a run, or its folder")
    parse.add_argument("--heldout", nargs="+", required=True, metavar="PATH", help="held-out text, as for --corpus")
    parse.add_argument(
        "--steps", nargs="+", type=int, metavar="STEP", help="checkpoints to measure (default: all with weights)"
    )
    sequences = "sequences of the shortest length, {}, in whole batches of 32 (default: as many as in training)"
    for name, description in (("heldout", "masked as in training"), ("measured", "masked at 15 %%, each way")):
        parse.add_argument(f"--{name}-sequences", type=int, metavar="N", help=sequences.format(description))
    return parse


def _add_run(parse: argparse.ArgumentParser) -> None:
    parse.add_argument(
        "--run", type=_run_folder, required=True, metavar="NAME", help="name of the run, in data/runs, or a folder"
    )


def _run_folder(text: str) -> Path:
    """Return the folder of a run: runs/NAME in the first data folder for a plain name, else the path itself."""
    return runs.roots()[0] / "runs" / text if os.path.basename(text) == text and text.strip(".") else Path(text)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status: 0 on success, 2 on an error (a sentence on stderr), 130 on Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = {"import": _import, "measure": _measure}.get(arguments[0] if arguments else "")
    run = partial(command, arguments[1:]) if command else partial(_pretrain, arguments)
    return exit_status(run, "the same command resumes from the last state")


def _import(arguments: list[str]) -> int:
    options = import_parser().parse_args(arguments)
    from pretrain.tf1 import import_series

    run = import_series(options.path, options.run, vocabulary=options.vocabulary, cased=options.cased)
    count = len(runs.checkpoints(run))
    checkpoints = "1 checkpoint" if count == 1 else f"{count:,} checkpoints"
    print(f"{run.path} ({checkpoints}) can be evaluated: python -m embryo_core evaluate {run.name}")
    return 0


def _measure(arguments: list[str]) -> int:
    options = measure_parser().parse_args(arguments)
    from pretrain.remeasure import measure_run

    run = runs.open_run(options.run)
    counts = {name: getattr(options, name) for name in ("heldout_sequences", "measured_sequences")}
    if measure_run(run, options.heldout, steps=options.steps, **counts):
        print(f"{run.path / 'log.jsonl'} has these measures")
    return 0


def _pretrain(arguments: list[str]) -> int:
    """Prepare the corpus (cached), write or check the run's card, and train to the last step.

    With --init-from, the run continues from that checkpoint and keeps its vocabulary (see continued.py).
    """
    options = parser().parse_args(arguments)
    config, folder = apply_options(preset(options.preset), options), options.run
    # imported late, since they load Keras and its backend; hosts must connect before anything else runs
    from pretrain.devices import find_devices
    from pretrain.train import train

    devices = find_devices(options.several_hosts)
    devices.check(config)
    with ExitStack() as stack:
        with devices.first_alone():
            start = continued.find_start(options.init_from, folder) if options.init_from else None
            data = _prepare_data(config, options.corpus, options.heldout, options.cache, start)
            if devices.is_first_host:
                busy = BusyRun(f"{folder} is being pretrained by another process; wait for its end or stop it.")
                stack.enter_context(runs.locked(folder, busy))
            path = folder.resolve()
            for subfolder in (path, path / "checkpoints", path / "state"):
                runs.own_folder(subfolder, path, BrokenRun)
            run = _open_run(config, folder, data, start)
        copy = stack.enter_context(devices.own_copy(run))
        writer = None
        if options.tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            writer = stack.enter_context(SummaryWriter(copy.path / "tensorboard"))
        train(copy, data, writer, devices)
    return 0


def _prepare_data(
    config: Config, sources: list[str], heldout: list[str], cache: Path, start: Checkpoint | None
) -> "Data":
    """Return the corpus split into examples; with `start`, check the settings against it and use its vocabulary."""
    from pretrain.batches import prepare_data
    from pretrain.corpus import extended_vocabulary

    if start is None:
        if config.extend_vocabulary:
            raise ConfigError("--extend-vocabulary adds pieces to those of another run: name it with --init-from.")
        return prepare_data(config, sources, heldout, cache)
    continued.check_model(config, start)
    continued.check_vocabulary(config.tokenizer, start)
    vocabulary = start.run.tokenizer
    if continued.find_growth(config, start) == "extended":
        vocabulary = extended_vocabulary(sources, heldout, vocabulary, config.extend_vocabulary, cache)
    return prepare_data(config, sources, heldout, cache, vocabulary)


def _open_run(config: Config, folder: Path, data: "Data", start: Checkpoint | None) -> Run:
    """Write the files that training reads (run.json, tokenizer, inherited checkpoints); return the run."""
    from pretrain.card import new_card, write_card

    run = data.copy_to(write_card(new_card(folder, config, data.corpus, start)))
    if start:
        run = continued.inherit_files(run, config, start)  # last, so that a run with weights also has its vocabulary
    return run


if __name__ == "__main__":
    sys.exit(main())
