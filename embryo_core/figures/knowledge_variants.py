"""Right facts asked in other ways: paraphrased, negated, or after a wrong word."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from embryo_core import results
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note
from embryo_core.figures.knowledge import relation_label
from embryo_core.groups import ALL
from embryo_core.metrics.lama_variants import NEGATED, PARAPHRASED
from embryo_core.types import Fact, Run
from embryo_core.words import count_range

METRIC = "lama_variants"
RIGHT = "right"
KINDS = {  # kind of a curve -> name, colour, symbol
    RIGHT: ("right as asked", style.GREY, "circle"),
    PARAPHRASED: ("most paraphrases right", style.BLUE, "square"),
    NEGATED: ("same answer when negated", style.PURPLE, "diamond"),
    "high": ("lost after a similar word", style.VERMILION, "triangle-up"),
    "low": ("lost after a dissimilar word", style.ORANGE, "triangle-down"),
    "random": ("lost after a random word", style.OLIVE, "cross"),
}
VARIANT_NAMES = {  # names of the variants of a fact
    PARAPHRASED: "paraphrase",
    NEGATED: "negation",
    "high": "similar word",
    "low": "dissimilar word",
    "random": "random word",
}
CURVES = Curves(
    by="kind",
    label=lambda kind: KINDS[kind][0],
    styles=lambda kinds: {kind: (colour, symbol) for kind, (_, colour, symbol) in KINDS.items() if kind in kinds},
    y_title="share of facts",
    metric=METRIC,
    unit="facts",
    height=420,
)


def variant_table(run: Run, relation: str = ALL) -> pd.DataFrame:
    """Return the proportions of a relation or of all facts: kind, step, value, n, low, high (95 %, Wilson)."""
    scores = results.read_scores(run, prefix=METRIC)
    rows = scores[scores["group"] == relation]
    kinds = rows["metric"].str.removeprefix(METRIC).str.removeprefix("_").replace("", RIGHT)
    rows = rows.assign(kind=pd.Categorical(kinds, [*KINDS]))[["kind", "step", "value", "n"]].dropna()
    return with_intervals(rows.sort_values(["kind", "step"], ignore_index=True).astype({"kind": "str"}))


def variants(runs: Sequence[Run], axis: AxisChoice, relation: str = ALL) -> Figure:
    """Return the figure of the proportions of right facts, of a relation or of all, that survive other wordings."""

    def caption(rows: pd.DataFrame) -> Caption:
        counts = ", ".join(
            f"{count_range(kind_rows['n'])} ({KINDS[kind][0]})" for kind, kind_rows in rows.groupby("kind", sort=False)
        )
        return Caption(
            "The model's answers when the facts that it gets right at a step are asked in other ways.",
            "Grey: precision at 1 as LAMA asks; the other curves are of the facts that are right. Blue: more than half "
            "of the paraphrases get the right answer (Elazar et al., 2021, measure consistency by pairs of paraphrases "
            "instead). Purple: the negated question gets the same answer, which is wrong. The others: the answer is "
            "lost after a word that is not the object (“Kabul? Sirindhorn was born in”), similar to it, dissimilar, or "
            "random (Kassner and Schütze, 2020). Bands: 95 % intervals (Wilson).",
            f"Facts: {data_note(runs[0], METRIC, 'facts of LAMA’s T-REx')}; n = {counts}.",
            "Click a point for its step.",
        )

    name, title = f"variants-{relation}", f"Correct facts, paraphrased and negated: {relation_label(relation)}"
    return curves_figure(runs, axis, lambda run: variant_table(run, relation), CURVES, name, title, caption)


VARIANTS_CAPTION = Caption(
    "The same fact asked in other ways.",
    "These questions are asked only at steps where the fact itself is answered right.",
)


def variants_of_fact(run: Run, fact: Fact, step: int) -> pd.DataFrame:
    """Return a row for each variant of a fact: kind, question, answer (at a step), kept, steps. Raises ResultsError.

    `steps` is the number of steps at which the fact was right; at `kept` of them the variant was right too.
    """
    rows = []
    for (kind, text), answers in results.read_variant_answers(run, fact.relation, fact.id).groupby(["kind", "variant"]):
        template = text if kind in (PARAPHRASED, NEGATED) else f"{text}? {fact.template}"
        at_step = answers.loc[answers["step"] == step, "prediction"]
        rows.append(
            {
                "kind": VARIANT_NAMES.get(kind, kind),
                "question": replace(fact, template=template).question.replace("[MASK]", "…"),
                "answer": at_step.iloc[0] if len(at_step) else None,
                "kept": int((answers["rank"] == 1).sum()),
                "steps": len(answers),
            }
        )
    return pd.DataFrame(rows, columns=["kind", "question", "answer", "kept", "steps"])
