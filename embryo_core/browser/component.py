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


def _component(name: str, *scripts: str) -> Component:
    """Read NAME.html, NAME.css and NAME.js; `scripts` are the files that NAME.js depends on."""
    return Component(name, read(f"{name}.html"), read(f"{name}.css"), read(*scripts, f"{name}.js"))


def _map_component(name: str, css: str = "maps.css") -> Component:
    """Read a component whose script draws attention maps, with the scripts MAPS; several share a `css` file."""
    return Component(name, read(f"{name}.html"), read(css), MAPS + read(f"{name}.js"))


# scripts on which all map components depend
MAPS = map_style.SCRIPT.read_text(encoding="utf-8") + read("map_svg.js", "maps.js") + "\n"
BAR = "cell_keys figure_zoom hidden_curves panels row_names tick_labels step_marks time_keys".split()

TIME_BAR = _component("time_bar", *(f"{name}.js" for name in BAR))
FIGURE_FILES = _component("figure_files", "clipboard.js")
GROWTH = _map_component("growth", "growth.css")
HEAD_GRID = _map_component("head_grid")
HEAD_HISTORY = _map_component("head_history")
HEAD_GRID_STEP = MAPS + read("head_grid_step.js")  # draws nothing itself, so it needs no HTML and CSS
COMPONENTS = (TIME_BAR, FIGURE_FILES, GROWTH, HEAD_GRID, HEAD_HISTORY)


def classic_scripts() -> str:
    """Return all components as one classic script, since browsers do not load modules from local files."""
    made = [
        f"embryo.components[{json.dumps(one.name)}] = {{ html: {json.dumps(one.html)}, css: {json.dumps(one.css)}, "
        f"draw: (() => {{\n{one.js.replace('export default function', 'return function')}\n}})() }};"
        for one in COMPONENTS
    ]
    return "\n".join(made) + "\n"
