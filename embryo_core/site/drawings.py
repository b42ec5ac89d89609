"""The parts of a static site that the browser's components draw: tiles, stored answers and attention maps."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from embryo_core import results
from embryo_core.browser import head_maps
from embryo_core.browser.component import GROWTH, HEAD_GRID, HEAD_HISTORY, Component
from embryo_core.browser.growth import growth_payload, make_tiles, sentence_tile
from embryo_core.curves.step_scales import Scale, log_spaced
from embryo_core.errors import FigureError
from embryo_core.figures import attention, query_captions
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.figure import Caption, Figure, citation, data_note, sentences, small_print
from embryo_core.figures.file_layout import map_sizes
from embryo_core.share import averaged
from embryo_core.share.head_history import METRIC
from embryo_core.types import Run

FiguresByScale = dict[Scale, dict[int, Figure]]  # by scale of steps and window of smoothing; 1 is as measured
HEAD_STEPS, GRID_STEPS = 8, 12  # at most this number of steps for a head's maps, and for the small maps of all heads


@dataclass(frozen=True)
class Drawing:
    """The data of a browser component, with title and caption like a figure's, and a table of its numbers, if any."""

    component: Component
    payload: bytes
    name: str  # prefix of its files' names
    title: str
    caption: Caption
    run: Run
    note: str = ""  # small print on the data that are shown
    headline: str = ""
    table: pd.DataFrame | None = None
    missing: tuple[str, ...] = ()


# === Tiles and answers ===


def tiles(runs: Sequence[Run], axis: AxisChoice) -> Drawing:
    """Return the Overview's tiles: a sentence, a head and curves. Raises FigureError if the run has none of these."""
    payload, tile_count = make_tiles(runs[0], axis.scale)
    if not tile_count:
        raise FigureError("Nothing of this run can be played yet.")
    caption = Caption("They play with the time bar; a click opens the page that shows more.")
    return Drawing(GROWTH, payload, f"{runs[0].name}-growth", "Watch it grow", caption, runs[0])


def answers(runs: Sequence[Run], axis: AxisChoice, number: int) -> Drawing:
    """Return the stored best answers to one of a run's examples at each step. Raises FigureError if none are stored."""
    example = results.read_examples(runs[0])[number]
    rows = [
        {"run": runs[0].name, "step": answer.step, "text": example.text, "answer": word, "probability": probability}
        for answer in example.answers
        for word, probability in answer.words.items()
    ]
    if not rows:
        raise FigureError("The answers to this text were not stored: python -m embryo_core examples stores them.")
    table = pd.DataFrame(rows)
    caption = Caption(
        f"The best answers to “{example.text}” at each checkpoint that was asked, best first.",
        "Answers below 1 % are left out.",
    )
    payload = growth_payload(sentence_tile(example), ({}, b""), {})
    name = f"{runs[0].name}-answers-{number + 1}"
    return Drawing(GROWTH, payload, name, example.text, caption, runs[0], table=table)


def describe_answers(run: Run) -> str:
    """Return the Query page's sentence on when the run learned its examples; "" without examples."""
    examples = results.read_examples(run)
    checkpoint_count = max((len(example.answers) for example in examples), default=0)
    return query_captions.describe_examples(examples, checkpoint_count, AxisChoice().for_run(run)) if examples else ""


# === Attention ===


def heads(run: Run) -> tuple[int, int]:
    """Return the number of layers, and of heads per layer, with stored attention maps; (0, 0) if none are stored."""
    steps = results.steps_done(run, METRIC)
    return results.read_attention_step(run, min(steps))[0].shape[:2] if steps else (0, 0)


def all_heads(runs: Sequence[Run], axis: AxisChoice) -> Drawing:
    """Return the small attention maps of all heads over the steps. Raises ResultsError."""
    run = runs[0]
    steps, total = _steps(run, GRID_STEPS)
    shown_steps, weights, _ = results.read_attention_steps(run, steps)
    omission = _describe_steps(len(steps), total)
    block = -(-weights.shape[-1] // head_maps.GRID_SIZE)
    caption = attention.describe_all_heads(run, len(steps), block, False, False, omission)
    payload = head_maps.grid_payload(run.name, head_maps.grid(shown_steps, weights), unit=run.step_unit)
    note = attention.print_all_heads(data_note(run, METRIC), "linear", False)
    return Drawing(HEAD_GRID, payload, head_maps.grid_name(run.name), "Attention of every head", caption, run, note)


def one_head(runs: Sequence[Run], axis: AxisChoice, layer: int, head: int) -> Drawing:
    """Return one head's maps, averaged over the sentences, with one byte per weight. Raises ResultsError."""
    run = runs[0]
    steps, total = _steps(run, HEAD_STEPS)
    maps = results.read_attention(run, layer, head, steps)
    source = results.read_sources(run).get(METRIC, {})
    history = averaged(run, layer, head, maps, source)
    name = f"{run.name}-attention-layer{layer}-head{head}"
    caption = attention.describe_head(run, history, source.get("sentences_per_position", []), True, len(steps))
    precision_note = "Weights are kept within 1.4 % of what was measured."
    caption = replace(caption, details=sentences(caption.details, _describe_steps(len(steps), total), precision_note))
    payload = head_maps.history_payload(history, "linear", name, compact=True)
    return Drawing(HEAD_HISTORY, payload, name, f"Layer {layer}, head {head}", caption, run, history.note)


def _steps(run: Run, max_count: int) -> tuple[list[int], int]:
    """Return at most `max_count` of the steps with maps, log-spaced, and the number of all steps with maps."""
    stored_steps = sorted(results.steps_done(run, METRIC))
    return log_spaced(stored_steps, max_count), len(stored_steps)


def _describe_steps(count: int, total: int) -> str:
    return "" if count == total else f"{count} of {total:,} steps have their maps here, spread over the logarithm."


# === What the browser draws ===


def figure_data(by_scale: FiguresByScale) -> dict[str, Any]:
    """Return the data with which the browser draws a figure on each scale of steps, and saves it."""
    figure = by_scale["log"][1]
    return {
        "name": figure.file_name,
        "csv": figure.to_csv(),
        "citation": figure.citation,
        "plots": {
            scale: {window: _plot(smoothed_figure) for window, smoothed_figure in by_window.items()}
            for scale, by_window in by_scale.items()
        },
        "files": {scale: _file_sizes(by_window[1]) for scale, by_window in by_scale.items()},
    }


def _plot(figure: Figure) -> dict[str, Any]:
    plot = figure.plot.to_plotly_json()
    return plot | {"layout": _without_template(plot["layout"])}


def _file_sizes(figure: Figure) -> dict[str, Any]:
    """Return the sizes of a figure's files, without plotly's template, which is stored once (`site._write_frame`)."""
    return {
        columns: size | {"layout": _without_template(size["layout"])} for columns, size in figure.file_sizes.items()
    }


def drawing_data(drawing: Drawing) -> dict[str, Any]:
    """Return the data with which the browser draws a component, and saves its attention maps as pictures."""
    table, run = drawing.table, [drawing.run.name]
    return {
        "name": drawing.name,
        "csv": "" if table is None else table.to_csv(index=False),
        "citation": citation(drawing.title, run, drawing.caption),
        "component": drawing.component.name,
        "payload": base64.b64encode(drawing.payload).decode(),
        "maps": map_sizes(small_print(run, drawing.note)) if drawing.component in (HEAD_GRID, HEAD_HISTORY) else None,
    }


def _without_template(layout: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in layout.items() if name != "template"}
