"""Tokens: when each part of speech is learned (Section 3, Figures 1, 7 and 8)."""

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import style, tokens

METRICS = {"mask_prediction": "Mask prediction", "token_reconstruction": "Token reconstruction"}
TASKS = {
    "mask_prediction": "every word is masked as a whole and predicted from its sentence; all its pieces must match",
    "token_reconstruction": "every word is left in its sentence and predicted from its own states; all its pieces must match",
}
SETS = {
    "parts of speech": list(style.PARTS_OF_SPEECH),
    "verb forms": list(style.VERB_FORMS),
    "frequency bands": list(style.FREQUENCY_BANDS),
}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Tokens")
    metric, family, rescaled, bands = _pick()
    scores = results.scores(view.run, metric)
    if scores.empty:
        command = f"python -m embryo_core evaluate {view.run.name} --metrics {metric} --treebank PATH"
        widgets.stop(f"{METRICS[metric]} has not been computed for '{view.run.name}' yet.", command)
    groups = widgets.pick_many(family.replace(" ", "_"), "Categories", SETS[family], SETS[family], pills=True)
    data = tokens.curves(scores, groups, rescaled)
    if data.empty:
        st.info("Choose at least one category that has results.", icon=":material/info:")
        return
    _accuracy(view, metric, data, rescaled, bands)
    left, right = st.columns([4, 3], gap="large")
    with left:
        _words(view, metric, list(data["group"].unique()))
    with right:
        _acquisition(view, metric, tokens.curves(scores, groups, rescaled=False))


def _pick() -> tuple[str, str, bool, bool]:
    """Metric, family of categories, whether rescaled by the last step, and whether bands are drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        metric = widgets.pick_one("metric", "Task", list(METRICS), format_func=METRICS.get, segmented=True)
        family = widgets.pick_one("family", "By", list(SETS), format_func=str.capitalize, segmented=True)
        unit = widgets.pick_one(
            "unit",
            "Accuracy",
            ["raw", "rescaled"],
            format_func={"raw": "Raw", "rescaled": "Relative to last step"}.get,
            segmented=True,
        )
        bands = widgets.pick_switch("bands", "95 % bands", default=True)
    return metric, family, unit == "rescaled", bands


def _accuracy(view: widgets.View, metric: str, data: pd.DataFrame, rescaled: bool, bands: bool) -> None:
    st.subheader(f"{METRICS[metric]} accuracy by category", anchor=False)
    counts = data.groupby("group")["n"].last().sort_values()
    source = results.sources(view.run).get(metric, {}).get("note", "the treebank given to the evaluation")
    caption = (
        f"{METRICS[metric]}: {TASKS[metric]}. Data: {source}; n = {counts.iloc[0]:,} ({counts.index[0]}) to "
        f"{counts.iloc[-1]:,} ({counts.index[-1]}) words per category. Line: mean of three neighbouring checkpoints; "
        "faint line: as measured"
        + ("; band: 95 % interval (Wilson) of the measured accuracy" if bands else "")
        + (", both divided by the accuracy at the last step, as in the paper" if rescaled else "")
        + ". Click a point to see the words behind it below."
    )
    figure = tokens.accuracy_figure(data, view.log, view.step, rescaled, bands)
    widgets.show_figure(figure, data, f"{view.run.name}-{metric}", caption, on_point=_open_point)


def _open_point(point: dict) -> None:
    group, step = point["customdata"][:2]
    permalink.choose("words", group)
    permalink.choose("step", step)


def _acquisition(view: widgets.View, metric: str, data: pd.DataFrame) -> None:
    st.subheader("Order of acquisition", anchor=False)
    order = tokens.acquisition(data)
    never = list(order.loc[order["onset"].isna(), "group"])
    caption = "First step from which the smoothed accuracy stays at or above half of its last value." + (
        f" Without an onset: {', '.join(never)}." if never else ""
    )
    figure = tokens.acquisition_figure(order, list(data["step"].unique()), view.log, view.step)
    widgets.show_figure(figure, order, f"{view.run.name}-{metric}-acquisition", caption)


def _words(view: widgets.View, metric: str, groups: list[str]) -> None:
    """The words of one category at the chosen step, with how often each was predicted."""
    heading = st.empty()
    left, right = st.columns(2)
    with left:
        group = widgets.pick_one("words", "Category", groups)
    with right:
        search = widgets.pick_text("word", "Search", placeholder="part of a word")
    heading.subheader(f"Words behind “{group}” at step {view.step:,}", anchor=False)
    words = results.words(view.run, metric, group, view.step)
    if words.empty:
        st.info(f"There are no words of this category at step {view.step:,}.", icon=":material/info:")
        return
    found = words[words["word"].str.contains(search, case=False, regex=False)]
    table = found.assign(accuracy=found["correct"] / found["n"])[["word", "tag", "n", "correct", "accuracy"]]
    st.dataframe(
        table.sort_values(["n", "word"], ascending=[False, True]),
        hide_index=True,
        column_config={
            "n": st.column_config.NumberColumn("n", help="How often the word stands in the treebank with this tag"),
            "accuracy": st.column_config.ProgressColumn("accuracy", format="percent", min_value=0, max_value=1),
        },
    )
    st.caption(
        f"{len(found):,} of {len(words):,} words of this category; "
        f"{found['correct'].sum():,} of {found['n'].sum():,} occurrences predicted correctly."
    )
