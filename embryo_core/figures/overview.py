"""Figures of the Overview: losses and accuracies of the training log, and the step at which learning takes off."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from embryo_core import runs as run_files
from embryo_core.curves import baselines
from embryo_core.curves.phases import Phase, loss_of_words, phases_of_log
from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import EmbryoError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, sentences
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

SPLITS = {"train": ("training", style.BLUE), "heldout": ("held-out", style.VERMILION)}
LOSS_WEIGHTS = {  # settings that weight a loss in the training objective
    "sentence_order_weight": "the sentence-order loss",
    "generator_weight": "the generator's loss",
    "discriminator_weight": "the discriminator's loss",
}


COUNT_NAMES = {  # column of n -> what it counts
    "n_masked": "masked pieces",
    "n_predicted": "pieces",
    "n_sequences": "sentence pairs",
    "replaced_token_n": "tokens",
}


@dataclass(frozen=True)
class Quantity:
    """A column of the training log: its title, the column of its n, and what it means, for the caption."""

    title: str
    count: str
    about: str
    per: str | None = None  # end of the unit of a loss; None: an accuracy
    more: str = ""  # addition to the unit of n
    baseline: float | None = None  # chance level, if all runs share it

    @property
    def unit(self) -> str:
        """Return what n counts."""
        return COUNT_NAMES[self.count] + self.more

    @property
    def y_title(self) -> str:
        """Return the title of the quantity's axis."""
        return f"accuracy ({self.unit})" if self.per is None else f"loss (nats{self.per})"


WORD_BASELINE = "Dashed: always the training text's most frequent word."
CALLED_PAIRS = "Proportion of sentence pairs correctly called"
OTHER_UNITS = ", and the pairs of sentences or tokens of the other objective"
QUANTITIES = {
    "masked_lm_loss": Quantity(
        "Masked-word loss", "n_masked", "Cross-entropy of the masked pieces.", " per masked piece"
    ),
    "masked_lm_accuracy": Quantity(
        "Masked-word accuracy", "n_masked", f"Proportion of masked pieces predicted exactly. {WORD_BASELINE}"
    ),
    "next_token_loss": Quantity(
        "Next-piece loss", "n_predicted", "Cross-entropy of every piece after those before it.", " per piece"
    ),
    "next_token_accuracy": Quantity(
        "Next-piece accuracy",
        "n_predicted",
        f"Proportion of pieces predicted exactly from those before. {WORD_BASELINE}",
    ),
    "loss": Quantity("Total loss", "n_masked", "", "", OTHER_UNITS),  # the caption comes from describe_total_loss
    "sentence_order_loss": Quantity(
        "Sentence-order loss",
        "n_sequences",
        "Cross-entropy of detecting swapped sentences; chance is 0.69.",
        " per pair",
    ),
    "sentence_order_accuracy": Quantity(
        "Sentence-order accuracy", "n_sequences", f"{CALLED_PAIRS} swapped or ordered; chance is 50 %.", baseline=0.5
    ),
    "next_sentence_accuracy": Quantity(
        "Next-sentence accuracy", "n_sequences", f"{CALLED_PAIRS} consecutive or not; chance is 50 %.", baseline=0.5
    ),
    "replaced_token_accuracy": Quantity(
        "Replaced-token accuracy",
        "replaced_token_n",
        "Proportion of tokens correctly called replaced or original. Answering “original” everywhere is right for "
        "every unmasked token. Dashed: that baseline, where logged.",
    ),
}
WORD_QUANTITIES = {  # quantities that have a section even if the log lacks them, by capability
    "masked_words": ("masked_lm_loss", "masked_lm_accuracy"),
    "next_words": ("next_token_loss", "next_token_accuracy"),
}
BASELINE_WORD = ("masked_lm_accuracy", "next_token_accuracy")  # quantities with a baseline that always answers one word


# === The log ===


@run_files.while_unchanged(lambda run: run.path / "log.jsonl", 16)
def training_log(run: Run) -> pd.DataFrame:
    """Return the training log: a row for each split ("train", "heldout") and step; empty if the run has none.

    Measures by length and position are left out. A row without counts gets the counts of its first measure, from which
    its means come too. The table is cached; do not modify it. Raises BrokenRun.
    """
    rows = [_counts_of_first(row.get("measures")) | row for row in run_files.read_log(run)]
    return pd.DataFrame(rows).drop(columns=["measures", "by_length"], errors="ignore")


def _counts_of_first(measures: Any) -> dict[str, int]:
    first = measures[0] if isinstance(measures, list) and measures else None
    return (
        {name: first[name] for name in COUNT_NAMES if isinstance(first.get(name), int)}
        if isinstance(first, dict)
        else {}
    )


@run_files.while_unchanged(lambda run: run.path / "log.jsonl", 64)
def training_phases(run: Run) -> tuple[Phase, ...]:
    """Return the phases of a run (see `curves.phases`); none if its log cannot be read."""
    with suppress(EmbryoError):
        return tuple(phases_of_log(training_log(run)))
    return ()


def logged_quantities(run: Run) -> list[str]:
    """Return the names of the quantities on the Overview: the quantities of words, and any other in the log."""
    log = training_log(run)
    word_quantities = WORD_QUANTITIES["next_words" if "next_words" in run_capabilities(run) else "masked_words"]
    return [name for name in QUANTITIES if name in word_quantities or name in log]


def quantity_table(run: Run, quantity: str) -> pd.DataFrame:
    """Return a row for each measurement of a quantity: split, step, the quantity, n and, if known, baseline."""
    log, count = training_log(run), QUANTITIES[quantity].count
    if quantity not in log:
        return pd.DataFrame(columns=["split", "step", quantity, "n"])
    table = log[["split", "step", quantity]].assign(n=log.get(count, pd.NA))[log[quantity].notna()]
    baseline_column = f"{quantity.removesuffix('_accuracy')}_baseline"  # in the log, only of held-out rows
    if quantity in BASELINE_WORD and (word := most_frequent_piece(run)):
        return table.assign(baseline=word[1])
    if QUANTITIES[quantity].baseline is not None:
        return table.assign(baseline=QUANTITIES[quantity].baseline)
    return table.assign(baseline=log[baseline_column]) if baseline_column in log else table


@run_files.while_unchanged(lambda run: run.frequencies, 64)
def most_frequent_piece(run: Run) -> tuple[str, float] | None:
    """Return the most frequent word of the training text and its relative frequency among the pieces.

    None if it is unknown, or not a single piece.
    """
    with suppress(EmbryoError):
        word = baselines.most_frequent_word(run)
        return word if word and load_tokenizer(run).single_piece(word[0]) is not None else None
    return None


def training_curve(runs: Sequence[Run], axis: AxisChoice, quantity: str) -> Figure:
    """Return the figure of a quantity of the log: training averages as a thin line, held-out text as a thick line."""
    run, spec = runs[0], QUANTITIES[quantity]
    curves = Curves(
        by="split",
        value=quantity,
        y_title=spec.y_title,
        baseline="baseline",
        label=lambda split: SPLITS[split][0],
        styles=lambda splits: {split: (SPLITS[split][1], "circle") for split in SPLITS if split in splits},
        decimals=".1%" if quantity.endswith("accuracy") else ".3f",
        baseline_name=baseline_name(run, quantity),
        height=300,
        emphasis={"train": 0.5},
    )

    def caption(table: pd.DataFrame) -> Caption:
        first, *rest = (spec.about or describe_total_loss(run.config)).split(". ", 1)
        n = table["n"] / table.get("seeds", 1)  # the n of a mean over seeds is a sum
        heldout = n[table["split"] == "heldout"].dropna()
        count_text = "" if heldout.empty else f" {int(heldout.iloc[-1]):,}"
        return Caption(
            f"{first.removesuffix('.')}.",
            sentences(*rest, "Training: mean over the batches since the point before."),
            f"Held-out: the same{count_text} {spec.unit} at every checkpoint, never trained on." if count_text else "",
        )

    figure = curves_figure(
        runs, axis, lambda line_run: quantity_table(line_run, quantity), curves, quantity, spec.title, caption
    )
    if quantity != loss_of_words(log := training_log(run)):
        return figure
    return replace(figure, headline=_headline(log, run, axis.for_run(run, runs)))


def baseline_name(run: Run, quantity: str) -> str:
    """Return the name of a baseline: its constant answer, or chance."""
    if quantity == "replaced_token_accuracy":
        return "always “original”"
    if quantity in BASELINE_WORD and (word := most_frequent_piece(run)):
        return f"always “{style.escape_text(word[0])}”"
    return "chance"


def describe_total_loss(config: Mapping[str, Any]) -> str:
    """Describe the total loss, and the training objective if that is a weighted sum."""
    if weights := weighted_losses(config):
        return f"Plain sum of the losses of all objectives; training minimises a weighted sum, with {weights}."
    return "Sum of the losses of all objectives, which training minimises."


def weighted_losses(config: Mapping[str, Any]) -> str:
    """Return the losses whose weight is not 1, such as "the sentence-order loss × 0.5"."""
    factors = {loss: config.get(setting, 1) for setting, loss in LOSS_WEIGHTS.items()}
    return ", ".join(f"{loss} × {factor:g}" for loss, factor in factors.items() if factor != 1)


def _headline(log: pd.DataFrame, run: Run, axis: StepAxis) -> str:
    """Return a sentence on how the loss on words fell, and where learning takes off; "" without two values."""
    loss = loss_of_words(log)
    if loss not in log:
        return ""
    split = "heldout" if (log["split"] == "heldout").any() else "train"
    rows = log[(log["split"] == split) & log[loss].notna()].sort_values("step")
    if len(rows) < 2:
        return ""
    first, last = rows[loss].iloc[[0, -1]]
    end = axis.step_in_unit(int(rows["step"].iloc[-1]))
    verb = "falls" if last < first else "goes"
    fall = f"The {QUANTITIES[loss].title.lower()} {verb} from {first:.2f} to {last:.2f} nats by {end}"
    phases = training_phases(run)
    if not phases:
        return f"{fall}; no phases can be distinguished."
    take_off = next((phase for phase in phases if phase.name == "take-off"), None)
    if take_off is None:
        return f"{fall}; nothing takes off after its first fall."
    interval = axis.as_estimate.between(take_off.earliest, take_off.latest)
    start = axis.as_estimate.step_in_unit(take_off.start)
    return f"{fall}; learning takes off at about {start} (95 % interval {interval})."
