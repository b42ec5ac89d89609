"""Figures and tables of factual knowledge over pretraining: LAMA T-REx precision at 1 (Section 6, Figures 6 and 14)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves
from embryo_core.corpora.baselines import named_by_subject
from embryo_core.corpora.groups import ALL, KINDS, TYPES
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.words import percent

NAMES = {
    "P17": "country",
    "P19": "place of birth",
    "P20": "place of death",
    "P30": "continent",
    "P36": "capital",
    "P37": "official language",
    "P103": "native language",
    "P127": "owned by",
    "P131": "administrative territory",
    "P136": "genre",
    "P138": "named after",
    "P140": "religion",
    "P159": "headquarters",
    "P176": "manufacturer",
    "P264": "record label",
    "P276": "location",
    "P279": "subclass of",
    "P361": "part of",
    "P364": "original language of film",
    "P407": "language of work",
    "P413": "position in team",
    "P449": "original network",
    "P495": "country of origin",
    "P740": "place of foundation",
    "P1376": "capital of",
}
NEVER = "never learned"
BASELINE = "always the most frequent object"


def label(relation: str) -> str:
    """A relation as people read it: its name in Wikidata and its id."""
    return "all relations" if relation == ALL else f"{NAMES[relation]} ({relation})" if relation in NAMES else relation


# === Relations ===


def relation_curves(scores: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Precision at 1 of every relation over steps, with its baseline and Wilson's interval of 95 %.

    Columns: relation, step, value, n, baseline, answer, low, high. `scores` is the metric "world_knowledge" as
    read from the store, or `baselines.precision`; `baselines` are those of the same facts (`baselines.of_facts`).
    """
    frame = scores.rename(columns={"group": "relation"})[["relation", "step", "value", "n"]]
    known = baselines.set_index("group")
    frame = frame.assign(baseline=frame["relation"].map(known["value"]), answer=frame["relation"].map(known["answer"]))
    frame = frame.sort_values(["relation", "step"], ignore_index=True)
    low, high = curves.interval(frame["value"].to_numpy(), frame["n"].to_numpy())
    return frame.assign(low=low, high=high)


def best_first(frame: pd.DataFrame) -> list[str]:
    """Relations by their precision at the last step, the best first."""
    last = frame[(frame["step"] == frame["step"].max()) & (frame["relation"] != ALL)]
    return last.sort_values("value", ascending=False)["relation"].tolist()


def default_relations(frame: pd.DataFrame) -> list[str]:
    """What to show first: all relations together, and the six that rise highest of those that were ever learned."""
    by_relation = list(frame[frame["relation"] != ALL].groupby("relation"))
    fates = {name: curves.classify_curve(own["value"], own["n"]) for name, own in by_relation}
    heights = {name: own["value"].max() - own["value"].iloc[0] for name, own in by_relation if fates[name] != NEVER}
    return [ALL, *sorted(heights, key=heights.get, reverse=True)[:6]]


def relation_figure(frame: pd.DataFrame, relations: list[str], axis: StepAxis) -> go.Figure:
    """Rows of `relation_curves` as lines with their intervals, and their baselines dashed.

    Every point carries its relation and step as customdata.
    """
    figure = go.Figure()
    for i, relation in enumerate(relations):
        rows = frame[frame["relation"] == relation]
        x, of = axis.values(rows["step"]), style.plain(label(relation))
        style.add_band(figure, x, rows["low"], rows["high"], _colour(relation, i), of)
    for i, relation in enumerate(relations):
        rows = frame[frame["relation"] == relation]
        _line(figure, rows, relation, i, axis)
    _add_baselines(figure, frame, relations, axis)
    axis.draw(figure, sorted(set(frame["step"])))
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    return style.finish(figure, "precision at 1", height=460)


def _add_baselines(figure: go.Figure, frame: pd.DataFrame, relations: list[str], axis: StepAxis) -> None:
    """The precision of always answering a relation's most frequent object."""
    ends = axis.values([frame["step"].min(), frame["step"].max()])
    for i, relation in enumerate(relations):
        of = frame[frame["relation"] == relation].iloc[0]
        if pd.notna(of["baseline"]):
            name, colour = style.plain(label(relation)), _colour(relation, i)
            answer = "each one's most frequent object" if pd.isna(of["answer"]) else f"“{style.plain(of['answer'])}”"
            text = f"{name}: always {answer} is right for {percent(of['baseline'])} of {of['n']:,} facts"
            style.add_baseline(figure, ends, of["baseline"], colour, name, text)
    style.explain_baselines(figure, BASELINE)


def _colour(relation: str, i: int) -> str:
    return style.GREY if relation == ALL else style.PALETTE[:-1][i % (len(style.PALETTE) - 1)]


def _line(figure: go.Figure, rows: pd.DataFrame, relation: str, i: int, axis: StepAxis) -> None:
    dash = "solid" if i < len(style.PALETTE) - 1 else "dot"
    smoothing.add_curve(
        figure,
        axis.values(rows["step"]),
        rows,
        "value",
        style.plain(label(relation)),
        _colour(relation, i),
        customdata=style.told(rows[["relation", "step", "value", "low", "high", "n"]]),
        line={"dash": dash},
        marker={"size": 6, "symbol": style.SYMBOLS[i % len(style.SYMBOLS)]},
        hovertemplate=f"{axis.hover('customdata[1]')}: %{{customdata[2]}} of %{{customdata[5]:,}} facts<br>"
        "95 % interval %{customdata[3]} to %{customdata[4]}",
    )


OVERLAY = Curves(
    by="relation",
    value="value",
    low="low",
    high="high",
    label=label,
    styles=lambda relations: {
        relation: (_colour(relation, i), style.SYMBOLS[i % len(style.SYMBOLS)])
        for i, relation in enumerate(relations)
    },
    y_title="precision at 1",
    tickformat=".0%",
    decimals=".1%",
    baseline="baseline",
)


KIND_COLOURS: dict[str, str] = dict(zip(KINDS, (style.ORANGE, style.BLUE, style.GREEN)))


def in_panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `relation_curves` in the order of small multiples: all facts, each type, then relations by type."""
    names = sorted((name for name in frame["relation"].unique() if name not in (ALL, *KINDS)), key=_panel_order)
    order = [ALL, *KINDS, *names]
    return frame.sort_values("relation", key=lambda column: column.map(order.index), kind="stable", ignore_index=True)


def _panel_order(relation: str) -> tuple[int, int, str]:
    """By type, those without one last, then by number."""
    digits = relation[1:]
    i = KINDS.index(TYPES[relation]) if relation in TYPES else len(KINDS)
    return i, int(digits) if digits.isdecimal() else 0, relation


def panels(templates: Mapping[str, str]) -> Curves:
    """How `in_panels` is drawn: a small multiple for each relation, its id, type and template above it (Figure 14)."""

    def titled(relation: str) -> str:
        if relation == ALL:
            return "all relations"
        if relation in KINDS:
            return f"all {relation} relations"
        kind = f", {TYPES[relation]}" if relation in TYPES else ""
        return f"{relation}{kind}\n{templates.get(relation, NAMES.get(relation, ''))}".strip()

    def styles(relations: Sequence[str]) -> dict[str, tuple[str, str]]:
        return {one: (KIND_COLOURS.get(TYPES.get(one, one), style.GREY), "circle") for one in relations}

    return replace(OVERLAY, label=titled, styles=styles, across=4, width=1280)


def relation_table(
    frame: pd.DataFrame, coverage: pd.DataFrame, facts: pd.DataFrame, without: pd.DataFrame
) -> pd.DataFrame:
    """One row per relation, the best at the last step first.

    Columns: relation, name, last (precision at 1 at the last step), answer (the most frequent
    object) and baseline (the precision of always giving it), named (share of facts whose object stands in the subject's
    name), without (the last precision over the others), asked (n facts), all (facts of the relation), coverage, history
    (of the relation's curve), and the number of facts with each history.

    `frame` comes from `relation_curves`, `coverage` is the metric "world_knowledge_coverage", `facts` from
    `results.read_histories`, `without` is `baselines.precision` over facts that the subject does not tell.
    """
    curve = frame[frame["relation"] != ALL]
    covered = coverage[coverage["group"] != ALL].sort_values("step").groupby("group")
    table = covered.agg(coverage=("value", "last"), all=("n", "last")).rename_axis("relation")
    by_relation = curve.groupby("relation")
    table["last"] = by_relation["value"].last()
    table[["answer", "baseline"]] = by_relation[["answer", "baseline"]].first()
    table["named"] = named_by_subject(facts).groupby(facts["relation"]).mean()
    table["without"] = without.groupby("group")["value"].last()
    table["history"] = pd.Series({name: curves.classify_curve(own["value"], own["n"]) for name, own in by_relation})
    counts = facts.groupby(["relation", "history"]).size().unstack().reindex(columns=curves.HISTORIES)
    table = table.join(counts).fillna(dict.fromkeys(curves.HISTORIES, 0)).astype(dict.fromkeys(curves.HISTORIES, int))
    table["asked"] = table[list(curves.HISTORIES)].sum(axis=1)
    table = table.sort_values("last", ascending=False).reset_index()
    table.insert(1, "name", table["relation"].map(NAMES).fillna(""))
    shown = ["last", "answer", "baseline", "named", "without", "asked", "all", "coverage", "history"]
    return table[["relation", "name", *shown, *curves.HISTORIES]]


def with_step(table: pd.DataFrame, frame: pd.DataFrame, step: int) -> pd.DataFrame:
    """The rows of `relation_table` with the column now, before last: precision at 1 at `step`, out of `frame`."""
    now = frame[frame["step"] == step].set_index("relation")["value"]
    table = table.copy()
    table.insert(table.columns.get_loc("last"), "now", table["relation"].map(now))
    return table


# === Facts ===


def facts_at(cloze: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The facts of one relation with their answers at one step, which `cloze` are.

    Columns: fact, subject, object, prediction, prediction_probability, rank and probability (both of the
    object), history, first (see `results.read_histories`).
    """
    answers = cloze[["fact", "prediction", "prediction_probability", "rank", "probability"]]
    table = facts[["fact", "subject", "object", "history", "first"]].merge(answers, on="fact")
    return table[["fact", "subject", "object", *answers.columns[1:], "history", "first"]]


def search(table: pd.DataFrame, words: str) -> pd.DataFrame:
    """The rows whose subject, object or answer holds the words as they are written, capitals aside."""
    if not words.strip():
        return table
    needle = words.strip().casefold()
    hits = [
        table[name].str.casefold().str.contains(needle, regex=False) for name in ("subject", "object", "prediction")
    ]
    return table[np.logical_or.reduce(hits)]


def fact_history(cloze: pd.DataFrame) -> pd.DataFrame:
    """What the model answered to one fact at every step, which `cloze` are, as in the paper's Table 9.

    Columns: step, prediction, prediction_probability, rank, probability (both of the true object), right.
    """
    rows = cloze.sort_values("step", ignore_index=True)
    names = ["step", "prediction", "prediction_probability", "rank", "probability"]
    return rows[names].assign(right=rows["rank"] == 1)


def fact_figure(history: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Probability of the true object, and of the top answer where that is another, at every step of one fact.

    `history` comes from `fact_history`; smoothing is that of the true object.
    """
    figure = go.Figure()
    x = axis.values(history["step"])
    answers = history[["step", "prediction", "rank"]].values
    shared = {
        "customdata": np.array([[step, style.plain(word), rank] for step, word, rank in answers], dtype=object),
        "hovertemplate": f"{axis.hover('customdata[0]')}: %{{y:.2%}}<br>top answer: %{{customdata[1]}}<br>"
        "rank of the true object: %{customdata[2]:,}",
    }
    top = history.drop(columns=[smoothing.SMOOTHED, smoothing.WINDOW], errors="ignore")
    hollow, full = ({"size": 7, "symbol": symbol} for symbol in ("circle-open", "circle"))
    names = (("the top answer", style.GREY), ("the true object", style.BLUE))
    smoothing.add_curve(
        figure, x, top, "prediction_probability", *names[0], line={"width": 1}, marker=hollow, **shared
    )
    smoothing.add_curve(figure, x, history, "probability", *names[1], marker=full, **shared)
    axis.draw(figure, list(history["step"]))
    figure.update_yaxes(tickformat="~%", rangemode="tozero")
    return style.finish(figure, "probability", height=280)
