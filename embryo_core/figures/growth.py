"""The content of the Overview's tiles: best example, most changed parts of speech, findings, description of a run."""

from collections.abc import Iterable, Sequence

import pandas as pd

from embryo_core import comparison, results
from embryo_core.errors import EmbryoError
from embryo_core.figures import style, tokens
from embryo_core.findings import Judgement
from embryo_core.findings.words import equivalent_metric
from embryo_core.groups import ALL
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from embryo_core.words import family_name

CURVE_COUNT = 3  # number of parts of speech with a curve
METRIC = "mask_prediction"
MIN_SURE_ACCURACY = 0.5  # accuracy of the best part of speech from which a model has learned grammar, not only some
MIN_KNOWING_PRECISION = 0.2  # precision at 1 over all facts from which a model has learned facts, not only few
LEADING = {  # findings that need only scores, by preference, and the meaning of each
    "reconstruction_before_prediction": "It can copy a word that it sees long before it can guess one that is hidden.",
    "syntax_and_semantics": "Probes of form and probes of meaning rise together.",
    "knowledge_fluctuates": "Facts come and go: a later checkpoint does not know all that an earlier one knew.",
    "function_words_prediction": "Words that hold a sentence together come before those that carry its meaning.",
    "frequent_words": "What it reads often it learns early.",
}
LEADING_COUNT = 3
PAPER_URL = "https://aclanthology.org/2020.emnlp-main.553/"


def best_example(examples: Sequence[ExampleQuestion]) -> ExampleQuestion | None:
    """Return the learned example that is best to watch; None if no example was learned.

    It has the largest product of the number of its different top answers and the probability of the last one.
    """

    def worth(example: ExampleQuestion) -> float:
        top_words = {next(iter(answers.words)) for answers in example.answers if answers.words}
        return len(top_words) * max(example.answers[-1].words.values(), default=0.0)

    learned = [candidate for candidate in examples if candidate.since is not None and len(candidate.answers) > 1]
    return max(learned, key=worth, default=None)


def changed_most(run: Run) -> pd.DataFrame:
    """Return group, step, accuracy of the parts of speech that change most; empty without two evaluated steps."""
    scores = results.read_scores(run, equivalent_metric(run, METRIC))
    table = tokens.accuracy_curves(scores, tuple(style.PARTS_OF_SPEECH), rescaled=False)
    if table["step"].nunique() < 2:
        return table.iloc[:0]
    return table[table["group"].isin(tokens.most_changed(table, CURVE_COUNT))][["group", "step", "accuracy"]]


def leading(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return at most LEADING_COUNT judgements, those with a verdict first, in the order of LEADING."""
    names = [*LEADING]
    order = sorted(
        judgements, key=lambda judgement: (judgement.verdict == "undecided", names.index(judgement.finding.name))
    )
    return order[:LEADING_COUNT]


def introduce_run(run: Run, last: int, seen: int | None) -> tuple[str, str]:
    """Return two sentences: what there is to watch, and what the model is and learns.

    `last` is the last step of the run, and `seen` the number of tokens seen by then.
    """
    unit = "training steps" if run.step_unit == "updates" else run.step_unit
    family = family_name(run.family)
    article = "an" if family[:1] in "AEIOU" else "a"
    learned = _name_learned(run)
    invitation = f"Watch {article} {family} grow up: {last:,} {unit}, from noise to {learned[0]}"
    sizes = (f"{style.abbreviate(sum(counts.values()))} parameters" if (counts := comparison.parameters(run)) else "",)
    size = ", ".join(part for part in (*sizes, f"{style.abbreviate(seen)} tokens" if seen else "") if part)
    learned_list = " and ".join(learned)
    return invitation, f"{size}: it learns {learned_list}." if size else f"It learns {learned_list}."


def _name_learned(run: Run) -> list[str]:
    """Return what a run has learned by its scores at the last step, such as "some grammar"; "language" if unknown."""
    try:
        facts, words = results.read_scores(run, "world_knowledge"), changed_most(run)
    except EmbryoError:
        return ["language"]
    facts = facts[facts["group"] == ALL].sort_values("step")
    best = words.loc[words["step"] == words["step"].max(), "accuracy"].max() if len(words) else 0.0
    learned = ["grammar" if best >= MIN_SURE_ACCURACY else "some grammar"] if len(words) else ["language"]
    if len(facts):
        learned.append("facts" if facts["value"].iloc[-1] >= MIN_KNOWING_PRECISION else "few facts")
    return learned
