"""Components of a page: their JavaScript, HTML and CSS, read from files in this folder.

A component's JavaScript has one default export, a function that draws the component. Streamlit calls it at every run of
a page with `parentElement`, `data` and `setTriggerValue`, and so does the static site (embryo_core/site/site.js).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from embryo_core.share import map_style

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Component:
    """The JavaScript, HTML and CSS of a component."""

    name: str
    html: str
    css: str
    js: str


def read(*names: str) -> str:
    """Return the contents of files in this folder, joined by newlines."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


def _component(name: str, scripts: str, style: str = "") -> Component:
    """Read NAME.html, STYLE.css (by default NAME.css), and NAME.js after the `scripts` that it depends on."""
    return Component(name, read(f"{name}.html"), read(f"{style or name}.css"), scripts + read(f"{name}.js"))


# scripts on which all map components depend
MAPS = map_style.SCRIPT.read_text(encoding="utf-8") + read("map_svg.js", "maps.js") + "\n"
BAR = "cell_keys figure_zoom hidden_curves panels row_names tick_labels step_marks time_keys".split()

TIME_BAR = _component("time_bar", read(*(f"{name}.js" for name in BAR)) + "\n")
FIGURE_FILES = _component("figure_files", read("clipboard.js") + "\n")
GROWTH = _component("growth", MAPS)
HEAD_GRID = _component("head_grid", MAPS, "maps")
HEAD_HISTORY = _component("head_history", MAPS, "maps")
HEAD_GRID_STEP = MAPS + read("head_grid_step.js")  # draws nothing itself, so it needs no HTML and CSS
COMPONENTS = (TIME_BAR, FIGURE_FILES, GROWTH, HEAD_GRID, HEAD_HISTORY)


def classic_scripts() -> str:
    """Return all components as one classic script, since browsers do not load modules from local files."""
    scripts = [
        f"embryo.components[{json.dumps(component.name)}] = {{ html: {json.dumps(component.html)}, "
        f"css: {json.dumps(component.css)}, "
        f"draw: (() => {{\n{component.js.replace('export default function', 'return function')}\n}})() }};"
        for component in COMPONENTS
    ]
    return "\n".join(scripts) + "\n"
