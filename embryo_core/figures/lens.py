"""The lens as a grid: layer by step, with the top word in each cell and its probability as colour."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from embryo_core.figures import cells, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.draft import Draft
from embryo_core.figures.figure import Caption, Figure, describe_networks, make_figure, sentences
from embryo_core.figures.file_words import WORDS
from embryo_core.figures.query import MARKED, NEEDS, TRACKED, TRUE_OBJECT, Subject
from embryo_core.types import Run
from embryo_core.words import percent, quantity

LIGHT_RGB, DARK_RGB = (0xEE, 0xF4, 0xF8), (0x08, 0x45, 0x7C)
COLOUR_TICKS = (0.01, 0.1, 0.25, 0.5, 1)  # ticks of the colour bar
COLOUR_BAR = {
    "title": {"text": "probability", "side": "top", "font_size": style.FONT_SIZE - 2},
    "orientation": "h",
    "len": 0.3,
}
COLOUR_BAR |= {"x": 1, "xanchor": "right", "y": 1.01, "yanchor": "bottom", "thickness": 8, "outlinewidth": 0}
COLOUR_BAR |= {"tickfont_size": style.FONT_SIZE - 3}
LETTER_WIDTH = 6.4  # pixels of a letter of a word in a cell
WORD_PADDING = 12  # pixels around a word
# pixels: narrowest column, widest column of a grid with few columns, least width of a grid with more
MIN_COLUMN_WIDTH, MAX_COLUMN_WIDTH, MIN_WIDTH = 34, 150, 900
LAYER_NAMES_WIDTH = 60  # pixels of the layer names
FOLDED_TEXT = "no word reaches 10 %"  # text in the column of folded steps
MIN_SHOWN_PROBABILITY = 0.1  # folded steps end where a layer gives a word this probability
FILLED_DEFINITION = (
    "The model's masked-word head, which was trained only on the last layer, is applied to every hidden state "
    "(layer 0: the embeddings). Other masks stay in place."
)
CONTINUED_DEFINITION = (
    "The model's final norm and head, which were trained only on the last layer, are applied to every layer's "
    "state at the last position (layer 0: the embeddings)."
)
COLOUR_NOTE = "Colour: the word's probability, on a square-root scale. Dotted: the chosen step."
LensCell = tuple[int, int, str, float]  # layer, step, word and probability
OUTLINE_NOTES = {TRUE_OBJECT: "orange: the true object", TRACKED: "pink: the tracked word"}  # colours as in MARKED


def lens(
    runs: Sequence[Run],
    axis: AxisChoice,
    subject: Subject,
    table: pd.DataFrame,
    pin: tuple[int, int] | None,
    marked: Mapping[str, str],
    folded: Sequence[int] = (),
    total: int | None = None,
) -> Figure:
    """Return the figure of the lens of one mask: the best word of each layer at each step; see `grid`.

    `table` comes from `query.ask_layers`. `total` counts the steps that could be asked, if the table has fewer.
    """
    (run,) = runs
    plot = grid(table, axis.for_run(run), pin, marked, folded)
    export_table = subject.label(table[["step", "layer", "rank", "token", "probability"]])
    title = f"Each layer's answer: {subject.text}{subject.which}"
    caption = _describe_lens(run, subject, table["step"].nunique(), marked, folded, total)
    return make_figure([run], subject.name(run, "lens"), title, plot, export_table, caption)


def _describe_lens(
    run: Run, subject: Subject, step_count: int, marked: Mapping[str, str], folded: Sequence[int], total: int | None
) -> Caption:
    """Return the caption of a lens at `step_count` steps; other arguments as for `lens`."""
    total_note = (
        f" of {total:,}, log-spaced; any other can be pinned by its step" if total and step_count < total else ""
    )
    folded_note = (
        f"The empty first column replaces {len(folded):,} of them; a switch above shows these." if folded else ""
    )
    position, definition = (
        ("after the text", CONTINUED_DEFINITION)
        if subject.continues
        else ("in the place of this [MASK]", FILLED_DEFINITION)
    )
    return Caption(
        f"The word that each layer would put {position}, at {quantity(step_count, 'checkpoint')}{total_note}.",
        sentences(
            definition,
            COLOUR_NOTE,
            *(f"Outlined in {OUTLINE_NOTES[role]}." for role in marked.values()),
            folded_note,
            describe_networks([run], NEEDS),
        ),
        f"Run '{run.name}', one text{subject.which}.",
        "Click a cell to pin its ten best words.",
    )


def unsure_steps(table: pd.DataFrame) -> list[int]:
    """Return the steps before any layer gives a word MIN_SHOWN_PROBABILITY; empty if no layer ever does."""
    max_probabilities = table.groupby("step")["probability"].max().sort_index()
    if max_probabilities.max() < MIN_SHOWN_PROBABILITY:
        return []
    return max_probabilities.index[: int((max_probabilities >= MIN_SHOWN_PROBABILITY).to_numpy().argmax())].tolist()


def grid(
    table: pd.DataFrame,
    axis: StepAxis,
    pin: tuple[int, int] | None,
    marked: Mapping[str, str],
    folded: Sequence[int] = (),
) -> Draft:
    """Draw the grid of a lens, with a line around the pinned cell (layer, step) and the column of the chosen step.

    Without a pin the outline is around the last layer at the chosen step. `table` has the columns step, layer, rank,
    token, probability; `marked` maps words to roles: a marked word is outlined in cells where it is the top word. The
    first steps that are `folded` become one empty column; the other columns are wide enough for every word, so the grid
    sets its own width. The colour shows the square root of the probability, the same on every grid. Only files have a
    colour bar; the page's (`colour_scale`) stays visible when a wide grid is scrolled. Every cell has its layer and
    step as customdata.
    """
    rows = table[(table["rank"] == 1) & ~table["step"].isin(folded)].sort_values(["step", "layer"])
    top_cells = list(zip(*(rows[name].tolist() for name in ("layer", "step", "token", "probability")), strict=True))
    columns, names = _place_steps(sorted(set(table["step"].tolist())), folded)
    layers = sorted({layer for layer, *_ in top_cells})
    figure = Draft()
    if folded:
        figure.add_annotation(x=0, y=(len(layers) - 1) / 2, text=FOLDED_TEXT, textangle=-90, showarrow=False)
    _add_words(figure, top_cells, columns)
    _add_points(figure, top_cells, columns, layers, axis)
    for layer, step, word, _ in top_cells:
        if word in marked:
            _outline(figure, columns[step], layers.index(layer), MARKED[marked[word]][0], 2)
    top_row = len(layers) - 1
    cells.outline_step(figure, columns, (0, top_row), color=style.GREY, width=1.5, dash="dot")
    if pin:
        _outline(figure, columns[pin[1]], layers.index(pin[0]), style.VERMILION, 3)
    else:
        cells.outline_step(figure, columns, (top_row, top_row), color=style.VERMILION, width=3)
    column_width = max(MIN_COLUMN_WIDTH, WORD_PADDING + LETTER_WIDTH * max(len(word) for *_, word, _ in top_cells))
    default_width = min(MIN_WIDTH, MAX_COLUMN_WIDTH * len(names))
    figure.update_layout(width=LAYER_NAMES_WIDTH + max(default_width, column_width * len(names)))
    return cells.finish_by_step(figure, axis, names, layers, "layer", height=max(430, 44 * len(layers) + 120))


def _place_steps(steps: list[int], folded: Sequence[int]) -> tuple[dict[int, int], list[str]]:
    """Return the column of each step, and the label of each column."""
    folded_count = len(folded)
    columns = {step: max(0, i - folded_count + 1) if folded_count else i for i, step in enumerate(steps)}
    labels = style.abbreviate_all(steps)
    return columns, [
        f"{labels[0]} … {labels[folded_count - 1]}" if folded_count > 1 else labels[0],
        *labels[folded_count or 1 :],
    ]


def _add_words(figure: Draft, top_cells: Sequence[LensCell], columns: Mapping[int, int]) -> None:
    """Draw the words of `top_cells`; folded steps have none."""
    _, cell_steps, words, values = zip(*top_cells, strict=True)
    steps = [*dict.fromkeys(cell_steps)]
    z = np.sqrt(np.reshape(values, (len(steps), -1)).T)
    texts = np.array([*map(style.escape_text, words)], object).reshape(len(steps), -1).T.tolist()
    colours = [[fraction, _mix_colours(fraction)] for fraction in np.linspace(0, 1, 11)]
    cells.add_cells(
        figure,
        z,
        texts,
        colours,
        (0, 1),
        style.FONT_SIZE - 3,
        meta=WORDS,
        x=[columns[step] for step in steps],
        showscale=False,
        colorbar=COLOUR_BAR | {"tickvals": np.sqrt(COLOUR_TICKS), "ticktext": [f"{tick:.0%}" for tick in COLOUR_TICKS]},
    )


def colour_scale() -> str:
    """Return the colour scale of a grid with its probabilities, as HTML."""
    ticks = {tick**0.5: f"{tick:.0%}" for tick in COLOUR_TICKS}
    return style.colour_scale("probability", map(_mix_colours, np.linspace(0, 1, 11)), ticks)


def _mix_colours(t: float) -> str:
    """Return a colour between LIGHT_RGB (t = 0) and DARK_RGB (t = 1)."""
    return "#" + "".join(f"{round(low + (high - low) * t):02x}" for low, high in zip(LIGHT_RGB, DARK_RGB))


def _add_points(
    figure: Draft, top_cells: Sequence[LensCell], columns: Mapping[int, int], layers: list[int], axis: StepAxis
) -> None:
    customdata = [
        [layer, step, style.escape_text(word), f"{step:,}", percent(probability)]
        for layer, step, word, probability in top_cells
    ]
    cell_name = "layer %{customdata[0]}, " + axis.name_step("%{customdata[3]}")
    hover = f"%{{customdata[2]}}, probability %{{customdata[4]}}<br>{cell_name}"
    x, y = [columns[step] for _, step, *_ in top_cells], [layers.index(layer) for layer, *_ in top_cells]
    cells.add_points(figure, x, y, customdata, hover)


def _outline(figure: Draft, x: int, y: int, colour: str, width: int) -> None:
    cells.outline(figure, (x, x), (y, y), color=colour, width=width)
