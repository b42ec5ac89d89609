"""log.jsonl and TensorBoard: means since the last row, weighted by what each batch counted, one JSON object a line."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from pretrain.masking import MaskedBatch
from pretrain.state import Progress


class Means:
    """Loss and accuracy of both objectives over several batches: sums over predictions, divided when asked for."""

    def __init__(self):
        self.sums: dict[int, Counter[str]] = {}  # by length of the sequences
        self.counts: dict[int, Counter[str]] = {}

    def add(self, of_batch: dict[str, Any], batch: MaskedBatch) -> None:
        """Add the means of one batch, as `Albert` gives them, with the number of its predictions."""
        length = batch.ids.shape[1]
        sums, counts = self.sums.setdefault(length, Counter()), self.counts.setdefault(length, Counter())
        for objective, count in (("masked_lm", float(batch.weights.sum())), ("sentence_order", len(batch.ids))):
            for kind in ("loss", "accuracy"):
                name = f"{objective}_{kind}"
                sums[name] += float(of_batch[name]) * count
                counts[name] += count

    def take(self) -> dict[str, Any]:
        """The means (with `loss`, the plain sum of both objectives' losses), starting anew afterwards.

        Where lengths are mixed, "by_length" has the same for each, under its length as text.
        """
        sums, counts = Counter(), Counter()
        for length in self.sums:
            sums.update(self.sums[length])
            counts.update(self.counts[length])
        row = _divided(sums, counts)
        if len(self.sums) > 1:
            row["by_length"] = {str(n): _divided(self.sums[n], self.counts[n]) for n in sorted(self.sums)}
        self.__init__()
        return row


def _divided(sums: Counter[str], counts: Counter[str]) -> dict[str, float]:
    means = {name: sums[name] / max(counts[name], 1) for name in sums}
    return {"loss": means["masked_lm_loss"] + means["sentence_order_loss"], **means}


class Log:
    """log.jsonl of a run; rows after the step from which it resumes are dropped first."""

    def __init__(self, path: Path, after: int, writer: Any = None):
        self.path, self.writer = path, writer
        kept = [line for line in self._whole_lines() if 0 < after >= json.loads(line)["step"]]
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        os.replace(temporary, path)

    def add(self, split: str, progress: Progress, means: dict[str, Any], **more: Any) -> None:
        """Append one row, and send the numbers among its means to TensorBoard where that is wanted."""
        row = {"split": split, "step": progress.step, **means, "tokens": progress.tokens, **more}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self.writer:
            for name, value in means.items():
                if isinstance(value, float):
                    self.writer.add_scalar(f"{split}/{name}", value, progress.step)
            self.writer.flush()

    def _whole_lines(self) -> list[str]:
        """Lines written before, without one that a crash cut short."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        return [line for line in lines if line.endswith("}")]
