"""Command line of pretraining: python -m pretrain PRESET --corpus PATH... --run data/runs/NAME."""

import argparse
import os
import sys
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from embryo_core import runs
from embryo_core.errors import EmbryoError
from embryo_core.types import Run
from pretrain.config import PRESETS, Config, changed, preset

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def parser() -> argparse.ArgumentParser:
    """Arguments of the command line."""
    parse = argparse.ArgumentParser(
        prog="python -m pretrain",
        description="Pretrain an ALBERT and keep its checkpoints. The same command again resumes where it stopped.",
    )
    parse.add_argument("preset", metavar="PRESET", help=f"one of: {', '.join(PRESETS)}")
    parse.add_argument("--corpus", nargs="+", required=True, metavar="PATH", help="text files, folders, hf:NAME:CONFIG")
    parse.add_argument("--heldout", nargs="+", default=[], metavar="PATH", help="text only measured, never trained on")
    parse.add_argument("--run", type=Path, required=True, metavar="FOLDER", help="data/runs/NAME")
    parse.add_argument("--steps", type=int, help="updates in all (the learning rate decays to zero over them)")
    parse.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="change other settings of the preset")
    parse.add_argument("--cache", type=Path, default=runs.REPOSITORY / "data" / "cache", help="prepared corpora")
    parse.add_argument("--tensorboard", action="store_true", help="also write TensorBoard events to FOLDER/tensorboard")
    return parse


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 when the last step is reached, 2 with one sentence on stderr when something is wrong."""
    options = parser().parse_args(arguments)
    try:
        config = preset(options.preset)
        if options.steps is not None:
            config = replace(config, steps=options.steps, warmup_steps=min(config.warmup_steps, options.steps))
        config = changed(config, options.set)
        pretrain(config, options.corpus, options.heldout, options.run, options.cache, options.tensorboard)
    except EmbryoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that may not be written
        print(f"error: {error}; what was written stays, and the same command goes on from there.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command resumes from the last state.", file=sys.stderr)
        return 130
    return 0


def pretrain(
    config: Config, sources: list[str], heldout: list[str], folder: Path, cache: Path, tensorboard: bool = False
) -> Run:
    """Prepare the corpus (cached), write or check the run's card, and train to the last step; returns the run."""
    from pretrain.data import prepare_data  # numpy and tokenizers only
    from pretrain.train import train, write_card  # imports Keras and its backend

    data = prepare_data(config, sources, heldout, cache)
    run = write_card(
        Run(
            name=folder.resolve().name,
            path=folder.resolve(),
            family="albert",
            objective="masked language model + sentence order",
            config=asdict(config),
            tokenizer_sha256=runs.sha256(data.corpus.tokenizer_folder / "tokenizer.json"),
            corpus=data.corpus.fingerprint,
            planned_steps=runs.step_grid(config.steps, config.save_every),
            code_version=version("embryo"),
        ),
        config,
    )
    data.copy_to(run)
    writer = None
    if tensorboard:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(folder / "tensorboard")
    train(run, config, data, writer)
    return run


if __name__ == "__main__":
    sys.exit(main())
