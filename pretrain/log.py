"""The log of a run: rows of log.jsonl and TensorBoard events, with means weighted by numbers of predictions."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from embryo_core import runs
from pretrain.state import Progress


class Means:
    """Mean loss and accuracy of each objective over several batches: sums over predictions, divided in `take`."""

    def __init__(self, objectives: Iterable[str]):
        self.objectives = tuple(objectives)
        self.sums: dict[int, Counter[str]] = {}  # length of the sequences -> sums

    def add(self, of_batch: dict[str, float], length: int) -> None:
        """Add the means of a batch, from `PretrainingModel.train`, whose sequences have this length."""
        sums = self.sums.setdefault(length, Counter())
        for name in self.objectives:
            n = of_batch[f"{name}_n"]
            sums_of_batch = {"loss": of_batch[f"{name}_loss"] * n, "accuracy": of_batch[f"{name}_accuracy"] * n, "n": n}
            sums.update({f"{name}_{quantity}": value for quantity, value in sums_of_batch.items()})

    def take(self) -> dict[str, Any]:
        """Return the means (with `loss`, the plain sum of the objectives' losses) and reset the sums.

        If there were several lengths, "by_length" maps each length, as text, to its means.
        """
        total_sums: Counter[str] = Counter()
        for sums in self.sums.values():
            total_sums.update(sums)
        row: dict[str, Any] = {**self._divided(total_sums)}
        if len(self.sums) > 1:
            row["by_length"] = {str(length): self._divided(self.sums[length]) for length in sorted(self.sums)}
        self.sums = {}
        return row

    def _divided(self, sums: Counter[str]) -> dict[str, float]:
        mean_values = {
            f"{name}_{quantity}": sums[f"{name}_{quantity}"] / max(sums[f"{name}_n"], 1)
            for name in self.objectives
            for quantity in ("loss", "accuracy")
        }
        return {"loss": sum(mean_values[f"{name}_loss"] for name in self.objectives), **mean_values}


class Log:
    """The log.jsonl of a run. Opening it removes lines that are not rows, and rows after the step `after`.

    If no update was made after the run's `first` step, its held-out row is removed too, since it is measured again.
    """

    def __init__(self, path: Path, after: int, writer: Any = None, first: int = 0):
        self.path, self.writer = path, writer
        last_steps = {"train": after, "heldout": after if after > first else first - 1}
        lines = runs.read_lines(path)
        kept_lines = [
            line for line in lines if (row := runs.parse_row(line)) and row["step"] <= last_steps[row["split"]]
        ]
        runs.write_lines(path, kept_lines)

    def add(self, split: str, progress: Progress, means: dict[str, Any], **extra_values: Any) -> None:
        """Append one row; with a writer, also write the numbers among its means to TensorBoard."""
        tokens = {} if progress.tokens is None else {"tokens": progress.tokens}
        row = {"split": split, "step": progress.step, **means, **tokens, **extra_values}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self.writer:
            for name, value in means.items():
                if isinstance(value, float):
                    self.writer.add_scalar(f"{split}/{name}", value, progress.step)
            self.writer.flush()
