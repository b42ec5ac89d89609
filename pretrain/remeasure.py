"""Measure the checkpoints of a pretrained run again: on more of its held-out text, or on any other text."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scipy.stats import binomtest

from embryo_core import runs
from embryo_core.errors import BrokenRun, BusyRun, ConfigError, CorpusError
from embryo_core.tokenizers.checks import check_tokenizer
from embryo_core.types import Checkpoint, Run
from pretrain import tokenizer as tokenizers
from pretrain.card import settings_of
from pretrain.collators import Collator, HeldoutBatches, heldout_batches
from pretrain.config import Config
from pretrain.corpus import Text, encode_text
from pretrain.export import read_checkpoint
from pretrain.families import FAMILIES
from pretrain.measure import HeldoutEvaluator, heldout_entry
from pretrain.model import PretrainingModel
from pretrain.train import build


def measure_run(
    run: Run,
    text: Iterable[str],
    *,
    steps: Iterable[int] | None = None,
    heldout_sequences: int | None = None,
    measured_sequences: int | None = None,
    progress: Callable[[str], None] = print,
) -> bool:
    """Measure the checkpoints of a run, all or those at `steps`, on the text of these files, folders or data sets.

    The numbers of sequences are the settings of `Config` by these names, by default those of training. On the run's own
    held-out text, the measures are added to the rows of log.jsonl, one checkpoint at a time; a missing row is written
    again, and a step that already has these measures is skipped. On other text the log is unchanged. Returns whether
    the text is the run's own. `progress` gets a line for each measure. Raises EmbryoError.
    """
    config = _with_counts(settings_of(run), heldout_sequences, measured_sequences)
    checkpoints = runs.loadable_checkpoints(run, steps)
    check_tokenizer(run.tokenizer / "tokenizer.json", run.path, BrokenRun)
    busy = BusyRun(f"{run.path} is being pretrained or measured by another process; wait for its end or stop it.")
    runs.own_folder(run.path, run.path, BrokenRun)
    with runs.locked(run.path, busy), TemporaryDirectory() as folder:
        tokenizer = tokenizers.load(run.tokenizer)
        encoded_text, digest = encode_text(text, tokenizer, Path(folder) / "text")
        is_own = digest == (run.corpus.get("heldout") or {}).get("tokens_sha256")
        model = build(config)
        collator = FAMILIES[config.family].collator(config, tokenizers.word_starts(tokenizer))
        evaluator = HeldoutEvaluator(model, _heldout_samples(encoded_text, config, collator), collator.count_key)
        if not is_own:
            progress(f"This is not the text that '{run.name}' was measured on in training: its log stays as it is.")
        for checkpoint in checkpoints:
            if is_own and _measured_before(run, checkpoint.step, evaluator.heldout):
                progress(f"step {checkpoint.step:,}: measured before")
                continue
            row = _measure(config, model, evaluator, checkpoint)
            for line in lines(row):
                progress(line)
            if is_own:
                _add_to_log(run, row)
    return is_own


def _with_counts(config: Config, heldout_sequences: int | None, measured_sequences: int | None) -> Config:
    """Return the settings with these numbers of sequences; None leaves one unchanged. Raises ConfigError."""
    changes: dict[str, Any] = {}
    for name, count, minimum in (
        ("heldout_sequences", heldout_sequences, 1),
        ("measured_sequences", measured_sequences, 0),
    ):
        option = f"--{name.replace('_', '-')}"
        if count is None:
            continue
        if count < minimum:
            raise ConfigError(f"{option}, received {count}, must be at least {minimum}.")
        if not hasattr(config, name):
            raise ConfigError(f"{option}: the family {config.family} masks no words; leave it out.")
        changes[name] = count
    return replace(config, **changes)


def lines(row: dict[str, Any]) -> list[str]:
    """Return a held-out row as text: one line for each measure, with the 95 % interval and n of every accuracy."""
    return [
        f"step {row['step']:,}, {measure['length']} tokens, {measure['masking']}: "
        + "; ".join(_accuracy(name, values) for name, values in _accuracies(measure))
        for measure in row["measures"]
    ]


def _heldout_samples(text: Text, config: Config, collator: Collator) -> list[HeldoutBatches]:
    collator.check("measured", text)
    if samples := list(heldout_batches(text, config, collator)):
        return samples
    raise CorpusError("The text is too short for a single sequence; give more.")


def _measured_before(run: Run, step: int, heldout: list[HeldoutBatches]) -> bool:
    """Return whether the log has these measures at this step: the same lengths, maskings and numbers of predictions."""
    sample_keys = {(sample.length, sample.masking, sample.predictions) for sample in heldout}
    rows = [row for row in runs.read_log(run) if row["split"] == "heldout" and row["step"] == step]
    return any(sample_keys <= {_sample(measure) for measure in row.get("measures", [])} for row in rows)


def _measure(
    config: Config, model: PretrainingModel, evaluator: HeldoutEvaluator, checkpoint: Checkpoint
) -> dict[str, Any]:
    read_checkpoint(model, config, checkpoint)
    mean_values, details = heldout_entry(evaluator)
    return {"split": "heldout", "step": checkpoint.step, **mean_values, "tokens": checkpoint.tokens, **details}


def _add_to_log(run: Run, row: dict[str, Any]) -> None:
    """Add the measures of a row to the log's row at the same step, which keeps its means.

    So a curve of means covers the same sequences at every step, even if only some checkpoints are measured again.
    """
    path, log_lines, new_row, position = run.path / "log.jsonl", [], row, None
    new_samples = {_sample(measure) for measure in row["measures"]}
    for line in runs.read_lines(path):
        old_row = runs.parse_row(line)
        if old_row is None or any(old_row[name] != row[name] for name in ("split", "step")):
            log_lines.append(line)
            continue
        position = len(log_lines)
        other_measures = [measure for measure in old_row.get("measures", []) if _sample(measure) not in new_samples]
        # the later row, if a step was trained twice
        new_row = json.loads(line) | {"measures": [*other_measures, *row["measures"]]}
    log_lines.insert(len(log_lines) if position is None else position, json.dumps(new_row).encode())
    runs.write_lines(path, log_lines)


def _sample(measure: dict[str, Any]) -> tuple[Any, ...]:
    """Return the properties that identify the sequences of a measure among those of the same text."""
    return measure.get("length"), measure.get("masking"), measure.get("n")


def _accuracies(measure: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield name, accuracy and n of the main objective, of its groups of positions, and of the other objectives."""
    yield "accuracy", measure
    for group in measure.get("positions", []):
        yield f"positions {group['first']} to {group['last']}", group
    for key, value in measure.items():
        if key.endswith("_accuracy"):
            name = key.removesuffix("_accuracy")
            yield name.replace("_", " "), {"accuracy": value, "n": measure[f"{name}_n"]}


def _accuracy(name: str, values: dict[str, Any]) -> str:
    low, high = binomtest(round(values["accuracy"] * values["n"]), values["n"]).proportion_ci(method="wilson")
    return f"{name} {values['accuracy']:.3f} ({low:.3f} to {high:.3f}, n = {values['n']:,})"
