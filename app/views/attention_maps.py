"""The section "Averaged maps": one head large, all heads small, and the head's weight on fixed positions over steps."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from app import figures, maps, notices, permalink, pickers, results
from app.components import head_maps
from app.components.figure_files import map_files
from app.figures import File
from app.view import View
from embryo_core.browser.head_maps import GRID_SIZE, grid_name
from embryo_core.curves.step_scales import SCALES, Scale, log_spaced
from embryo_core.figures import attention
from embryo_core.figures.figure import Caption, citation, small_print
from embryo_core.figures.markdown import literal
from embryo_core.share import HeadHistory, gif_bytes, html_page, map_style
from embryo_core.share.head_history import METRIC
from embryo_core.words import join_names

HISTORY_KEY, GRID_KEY = "head_history", "head_grid"  # keys of the components: the large map, the small multiples
COMPARED = "_beside"  # end of the keys of a compared run's components
STRIP_COUNT, STRIP_SIDE = 5, 120  # number of maps in the strip at the top, and their side in pixels
ROWS_SWITCH = "rows"  # name in the URL of the switch for normalised rows


@dataclass(frozen=True)
class MapStyle:
    """How maps are drawn: their colour scale, whether all heads share it, and whether rows are normalised."""

    scale: Scale
    shared: bool
    normalised: bool


def show(view: View) -> None:
    """Draw the section."""
    normalised = permalink.get(ROWS_SWITCH) == "on"
    steps = maps.shown_steps(view.run, view.evaluated_step)
    if not steps:
        stop_without_maps(view)
    layers, heads = maps.grid_size(view.run, normalised)
    layer, head, style = _pick(view, layers, heads)
    history = maps.head_history(view.run, layer, head, steps, normalised, style.shared)
    if len(view.drawn_runs) > 1:
        _show_two_runs(view, history, style)
    else:
        _show_strip(view, history)
        left, right = st.columns(2, gap="large")
        with left:
            _show_head(view, history, style)
        with right:
            st.header("All heads", anchor=False)
            _show_all_heads(view, history, style)
    st.header("Where this head attends", anchor=False)
    figures.plot(view, attention.position_weights, layer=layer, head=head, normalised=normalised)


def _show_strip(view: View, history: HeadHistory) -> None:
    """Draw small maps of the head at STRIP_COUNT log-spaced steps, from the first to the last, to show how it forms."""
    with st.container(horizontal=True, gap="small", key="strip"):
        for step in log_spaced(history.steps, STRIP_COUNT):
            (i,) = np.flatnonzero(history.steps == step)
            step_name = view.name_step(int(step))
            picture = map_style.picture(history, int(i))
            alt = f"{history.label}, {step_name}"
            st.image(picture, step_name, width=STRIP_SIDE, output_format="PNG", alt=alt)


def stop_without_maps(view: View) -> None:
    """End the page with the command that computes averaged maps."""
    notices.stop_uncomputed(view.run, METRIC, f"Run '{view.run.name}' has no attention maps yet.")


def _pick(view: View, layers: int, heads: int) -> tuple[int, int, MapStyle]:
    """Return the picked layer and head, and how the maps are drawn."""
    with pickers.row():
        layer, head = pickers.pick_head(layers, heads, results.default_head(view.run)[1:])
        scale = pickers.pick_one("colours", "Colours", SCALES, segmented=True)
        shared = pickers.pick_switch("shared_colours", "One scale for all heads")
        normalised = pickers.pick_switch(ROWS_SWITCH, "Rows sum to 1")
        pickers.pick_smoothing()
    return layer, head, MapStyle(scale, shared, normalised)


def _show_two_runs(view: View, history: HeadHistory, style: MapStyle) -> None:
    """Draw the page's run next to the first compared run: the same head of both, and all heads."""
    _, other_run, *further_runs = view.drawn_runs
    if further_runs:
        names = join_names([run.name for run in further_runs])
        verb = "is" if len(further_runs) == 1 else "are"
        notices.note(f"Attention compares two runs; {names} {verb} left out.")
    other_view = view.for_run(other_run)
    steps = maps.shown_steps(other_run, other_view.evaluated_step)
    layers, heads = maps.grid_size(other_run, style.normalised) if steps else (0, 0)
    left, right = st.columns(2, gap="large")
    with left:
        _show_run(view, history, style)
    with right:
        if not steps:
            notices.note(f"Run '{other_run.name}' has no attention maps.")
        elif history.layer > layers or history.head > heads:
            notices.note(f"Run '{other_run.name}' has {layers} layers of {heads} heads; this head is missing.")
        else:
            head, bar_steps = (history.layer, history.head), tuple(view.bar_steps(other_run, steps))
            other_history = maps.head_history(other_run, *head, steps, style.normalised, style.shared, bar_steps)
            _show_run(other_view, other_history, style)


def _show_run(view: View, history: HeadHistory, style: MapStyle) -> None:
    """Draw one of two compared runs: its head, and below it all heads."""
    _show_head(view, history, style)
    _show_all_heads(view, history, style)


def _show_head(view: View, history: HeadHistory, style: MapStyle) -> None:
    """Draw one head large; its heading names the run if another one is compared."""
    has_two_runs = len(view.drawn_runs) > 1
    heading = f"{literal(view.run.name)}, {history.label.lower()}" if has_two_runs else history.label
    st.header(heading, anchor=False)
    sentences = results.sources(view.run).get(METRIC, {}).get("sentences_per_position", [])
    step_count = len(maps.map_steps(view.run))
    caption = attention.describe_head(view.run, history, sentences, style.normalised, step_count)
    show_head(view, history, style.scale, caption)


def show_head(view: View, history: HeadHistory, scale: Scale, caption: Caption) -> None:
    """Draw a head's maps at the time bar's step, their caption, and the menu of their files."""
    step, name = view.evaluated_step(history.steps), history.name
    head_maps.head_history(history, scale, HISTORY_KEY + COMPARED * bool(history.bar_steps))

    def table() -> str:
        return attention.maps_csv(attention.map_table(history, step), history.run, history.note)

    _show_files(
        name,
        history.label,
        caption,
        history.run,
        history.note,
        File("CSV, the weights of this map", f"{name}-step{step}.csv", table),
        File("GIF, this head over all steps", f"{name}.gif", lambda: gif_bytes(history, scale)),
        File("HTML, the same as a page with a slider", f"{name}.html", lambda: html_page(history, scale)),
    )


def _show_all_heads(view: View, history: HeadHistory, style: MapStyle) -> None:
    """Draw the small maps of all heads at the steps of a history, their caption, and the menu of their files."""
    run, steps, bar_steps = view.run, tuple(history.steps.tolist()), history.bar_steps
    grid_steps = maps.grid_steps(run)
    grid_bar_steps = tuple(at for step, at in zip(steps, bar_steps) if step in grid_steps)
    layers, heads = maps.grid_size(run, style.normalised)
    grid = maps.grid(run, style.normalised, grid_bar_steps)
    step_maps = maps.added_to_grid(run, steps, style.normalised, bar_steps)
    key = GRID_KEY + COMPARED * bool(bar_steps)
    head_maps.head_grid(grid, step_maps, layers, heads, on_head=pickers.choose_head, key=key)
    step, name = view.evaluated_step(steps), grid_name(run.name)
    note = attention.maps_note(run, style.normalised)
    printed = attention.print_all_heads(note, style.scale, style.shared)
    caption = attention.describe_all_heads(
        run,
        len(grid_steps),
        -(-history.size // GRID_SIZE),
        style.shared,
        style.normalised,
        attention.describe_steps(len(steps), len(maps.map_steps(run))),
    )

    def table() -> str:
        weights = maps.at_step(run, step, style.normalised)
        return attention.maps_csv(attention.weights_table(weights, step), run.name, note)

    def animation() -> bytes:
        return maps.gif(run, steps, style.normalised, style.scale, style.shared, printed)

    _show_files(
        name,
        "Attention of every head",
        caption,
        run.name,
        printed,
        File("CSV, the weights of all heads", f"{name}-step{step}.csv", table),
        File("GIF, all heads over these steps", f"{name}.gif", animation),
    )


def _show_files(name: str, title: str, caption: Caption, run: str, note: str, *files: File) -> None:
    """Draw the caption of the maps called `name` and the menu of their files, whose small print includes `note`."""

    def pictures() -> None:
        map_files(name, small_print([run], note), citation(title, [run], caption))

    figures.show_files(name, caption, pictures, *files)
