"""Attention maps on a page, with a caption and a menu of files."""

from app import figures
from app.components import head_maps
from app.components.figure_files import map_files
from app.figures import File
from app.view import View
from embryo_core.curves.step_scales import Scale
from embryo_core.figures.attention import map_table, maps_csv
from embryo_core.figures.figure import Caption, citation, small_print
from embryo_core.share import HeadHistory, gif_bytes, html_page

HISTORY = "head_history"  # key of the large map's component


def show_head(view: View, history: HeadHistory, scale: Scale, name: str, caption: Caption, key: str = HISTORY) -> None:
    """Draw a head's maps at the time bar's step; `name` as in `head_maps.head_history`."""
    step = view.evaluated_step(history.steps)
    head_maps.head_history(history, scale, name, key)

    def table() -> str:
        return maps_csv(map_table(history, step), history.run, history.note)

    show_map_files(
        name,
        f"Layer {history.layer}, head {history.head}",
        caption,
        history.run,
        history.note,
        File("CSV, the weights of this map", f"{name}-step{step}.csv", table),
        File("GIF, this head over all steps", f"{name}.gif", lambda: gif_bytes(history, scale)),
        File("HTML, the same as a page with a slider", f"{name}.html", lambda: html_page(history, scale)),
    )


def show_map_files(name: str, title: str, caption: Caption, run: str, note: str, *files: File) -> None:
    """Draw the caption of the maps called `name` and the menu of their files, whose small print includes `note`."""
    figures.show_files(
        name,
        caption,
        lambda: map_files(name, small_print([run], note), citation(title, [run], caption)),
        *files,
    )
