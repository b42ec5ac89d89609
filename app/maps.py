"""Attention maps of a page with their captions and the menu of their files."""

from collections.abc import Sequence

from app import figures
from app.components import head_maps
from app.components.figure_files import map_files
from app.figures import File
from app.view import View
from embryo_core.curves.step_scales import Scale
from embryo_core.figures.attention import map_table
from embryo_core.figures.captions.figure_file import copied, small_print
from embryo_core.figures.captions.networks import network
from embryo_core.share import HeadHistory, gif_bytes, html_page

HISTORY = "head_history"


def show_head(
    view: View,
    history: HeadHistory,
    scale: Scale,
    name: str,
    caption: str,
    key: str = HISTORY,
    at: Sequence[float] = (),
) -> None:
    """One head's maps at the time bar's step, coloured on `scale`; the names of its files begin with `name`.

    `at` as in `head_maps.head_history`.
    """
    step = view.evaluated(history.steps)

    def table() -> str:
        return figures.numbers(map_table(history, step), history.run, history.note)

    head_maps.head_history(history, scale, name, key, at)
    show_map_files(
        view,
        name,
        f"Layer {history.layer}, head {history.head}",
        caption,
        history.note,
        File("CSV, the weights of this map", f"{name}-step{step}.csv", table),
        File("GIF, this head over all steps", f"{name}.gif", lambda: gif_bytes(history, scale)),
        File("HTML, the same as a page with a slider", f"{name}.html", lambda: html_page(history, scale)),
    )


def show_map_files(view: View, name: str, title: str, caption: str, note: str, *files: File) -> None:
    """The caption of the maps of this `name` and the menu of their files, which have the `note` in small print."""
    run = view.run.name
    caption += network([view.run], {"attentions"})
    figures.show_files(
        name,
        caption,
        lambda: map_files(name, small_print(run, note), copied(title, run, caption)),
        *files,
    )
