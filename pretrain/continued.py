"""Continued pretraining: a new run that continues from a checkpoint of another run, on other text or as a larger model.

The new run inherits the log and the checkpoints up to that one, whose files are linked rather than copied. Its settings
count updates from there; the counts of steps, sequences and tokens continue. A run that is twice as wide or has new
pieces (see grow.py) has no earlier checkpoints, since those are of another model.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Literal

from msgspec import convert

from embryo_core import runs
from embryo_core.errors import ConfigError, TokenizerMismatch
from embryo_core.runs.schema import CorpusCard
from embryo_core.types import Change, Checkpoint, Origin, Run
from pretrain.config import Config
from pretrain.families import FAMILIES

DROPOUT_FIELDS = (
    "hidden_dropout_prob attention_probs_dropout_prob classifier_dropout_prob resid_pdrop embd_pdrop attn_pdrop"
)
FREE_FIELDS = ("initializer_range", "dtype", *DROPOUT_FIELDS.split())  # fields of config.json that may differ
DOUBLED_SETTINGS = ("hidden_size", "num_attention_heads", "intermediate_size")  # in a model twice as wide
Growth = Literal["extended", "wider"]  # by new pieces; to twice the width
GROWN_FIELDS: dict[Growth | None, tuple[str, ...]] = {"extended": ("vocab_size",), "wider": DOUBLED_SETTINGS}


def find_start(name_or_path: str, folder: Path) -> Checkpoint:
    """Find the checkpoint of --init-from: RUN (its last one with weights), RUN@STEP, or the folder of a checkpoint.

    If the run in `folder` already has a copy of it, return the copy. Raises RunError, CheckpointError, ConfigError.
    """
    name, step = _parse_run_and_step(name_or_path)
    if (folder / "run.json").is_file():
        run = runs.read_run(folder)
        if run.origin is None or Path(name).name != run.origin.run or step not in (None, run.origin.step):
            first_option = f"--init-from {run.origin.run}@{run.origin.step}" if run.origin else "no --init-from"
            raise ConfigError(f"Run '{run.name}' was started with {first_option}, received --init-from {name_or_path}.")
        if own_copies := [checkpoint for checkpoint in runs.checkpoints(run) if checkpoint.step == run.origin.step]:
            return own_copies[0]
        step = run.origin.step
    run = runs.open_run(name)
    checkpoints = runs.loadable_checkpoints(run, None if step is None else [step])
    if not (checkpoints[-1].path / "model.safetensors").is_file():
        raise ConfigError(
            f"Run '{run.name}' points to its weights, and a pretraining continues from a model.safetensors in the "
            "run's own folder; add the run again with --copy."
        )
    return checkpoints[-1]


def _parse_run_and_step(name_or_path: str) -> tuple[str, int | None]:
    """Parse "RUN@STEP", ".../RUN/checkpoints/stepSTEP" or "RUN" into run and step."""
    path = Path(name_or_path)
    if path.parent.name == "checkpoints" and path.name.removeprefix("step").isdecimal():
        return str(path.parents[1]), int(path.name.removeprefix("step"))
    name, separator, step = name_or_path.rpartition("@")
    return (name, int(step)) if separator and step.isdecimal() else (name_or_path, None)


def make_origin(start: Checkpoint, folder: Path, config: Config, corpus: dict[str, Any]) -> Origin:
    """Return the origin to record in run.json of the run in `folder`, which continues from the checkpoint `start`."""
    if start.run.origin and start.run.path == folder:
        return start.run.origin  # `start` is the run's own copy
    changes = [change for change in runs.changes(start.run) if change.step < start.step]
    # new pieces change the tokens of the same text, but not its sources
    growth = find_growth(config, start)
    compared_part = "sources" if growth == "extended" else "train"
    same_text = start.run.corpus.get(compared_part) == corpus[compared_part]
    if growth:
        larger = f"{config.extend_vocabulary:,} new pieces" if growth == "extended" else "twice as wide"
        changes.append(Change(start.step, larger if same_text else f"{larger}, other text"))
    elif same_text:  # for other text, the two corpora in run.json differ
        changes.append(Change(start.step, "same text, new warm-up"))
    weights = runs.sha256(start.path / "model.safetensors")
    seen_counts, token_counts = (start.sequences or 0, start.tokens or 0), runs.counted_tokens(start.run)
    return Origin(start.run.name, start.step, *seen_counts, weights, tuple(changes), token_counts)


def check_model(config: Config, start: Checkpoint) -> None:
    """Raise ConfigError unless the settings give the checkpoint's model, or one twice as wide or with new pieces."""
    architecture = FAMILIES[config.family].huggingface_config(config)
    stored_config = runs.read_config(start, dict[str, object])
    free_fields = {*FREE_FIELDS, *GROWN_FIELDS.get(find_growth(config, start), ())}
    for name, own_value in architecture.items():
        if name not in free_fields and stored_config.get(name) != own_value:
            twice = f", or double {', '.join(DOUBLED_SETTINGS)}" if FAMILIES[config.family].can_widen else ""
            raise ConfigError(
                f"{start.path} has {name} {stored_config.get(name)}, but these settings give {own_value}. A continued "
                f"pretraining keeps the model and vocabulary; give the first run's preset and settings{twice}."
            )


def find_growth(config: Config, start: Checkpoint) -> Growth | None:
    """Return how the settings make the model larger than the checkpoint's; None for the same model, or any other."""
    stored_config = runs.read_config(start, dict[str, object])
    if config.extend_vocabulary and stored_config.get("vocab_size") == config.vocab_size - config.extend_vocabulary:
        return "extended"
    pairs_of_sizes = [(stored_config.get(name), getattr(config, name)) for name in DOUBLED_SETTINGS]
    are_doubled = all(isinstance(size, int) and own_size == 2 * size for size, own_size in pairs_of_sizes)
    return "wider" if are_doubled and FAMILIES[config.family].can_widen else None


def check_vocabulary(vocabulary_type: str, start: Checkpoint) -> None:
    """Check that the vocabulary of the checkpoint's run is of this kind and unchanged since training.

    Raises ConfigError for a vocabulary of another kind, TokenizerMismatch for a changed or missing file.
    """
    path = start.run.tokenizer / "tokenizer.json"
    if not path.is_file() or runs.sha256(path) != start.run.tokenizer_sha256:
        raise TokenizerMismatch(
            f"{path} is not the vocabulary that run '{start.run.name}' was trained with; put that one back."
        )
    stored_kind = json.loads(path.read_text(encoding="utf-8"))["model"]["type"].lower()
    if stored_kind != vocabulary_type:
        raise ConfigError(
            f"{path} is a {stored_kind} vocabulary, but these settings have tokenizer={vocabulary_type}; a continued "
            "pretraining "
            f"keeps the vocabulary: use --set tokenizer={stored_kind}."
        )


def inherited_steps(config: Config, start: Checkpoint) -> tuple[int, ...]:
    """Return the steps before `start` whose checkpoints a run continued from it inherits."""
    if find_growth(config, start):
        return ()
    return tuple(checkpoint.step for checkpoint in runs.checkpoints(start.run) if checkpoint.step < start.step)


def inherit_files(run: Run, config: Config, start: Checkpoint) -> Run:
    """Copy log, word frequencies and checkpoints up to `start` to a new run; a repeated call completes them.

    A run with a larger model gets its first checkpoint, grown from `start`, in place of earlier checkpoints. Return the
    run with the number of words that the inherited frequencies count.
    """
    if start.run.path == run.path:
        return run
    lines = runs.read_lines(start.run.path / "log.jsonl")
    inherited_lines = (line for line in lines if (row := runs.parse_row(line)) and row["step"] <= start.step)
    runs.write_lines(run.path / "log.jsonl", inherited_lines)
    if start.run.frequencies.is_file():
        run = runs.record_counted_words(run, convert(start.run.corpus, CorpusCard).counted_words)
        with runs.replacing(run.frequencies) as temporary:
            shutil.copyfile(start.run.frequencies, temporary)
    if growth := find_growth(config, start):
        from pretrain import grow  # imports Keras, which the checks above do not need

        (grow.write_extended if growth == "extended" else grow.write_widened)(run, config, start)
        return run
    for checkpoint in runs.checkpoints(start.run):  # in order, so that if `start` is there, nothing is missing
        if checkpoint.step <= start.step:
            with runs.replacing(run.path / "checkpoints" / f"step{checkpoint.step}") as temporary:
                shutil.copytree(checkpoint.path, temporary, copy_function=runs.link_or_copy)
    return run
