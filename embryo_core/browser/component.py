"""A component of a page: its JavaScript, HTML and CSS, read from files of this folder.

The JavaScript has one default export, a function that draws the component: Streamlit calls it at every run of a page
with `parentElement`, `data` and `setTriggerValue`, and so does the static site (embryo_core/site/site.js).
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Component:
    """What a component is made of, as text."""

    name: str
    html: str
    css: str
    js: str


def component(name: str, *scripts: str) -> Component:
    """Read the component NAME.html, NAME.css and NAME.js; `scripts` are those that its own calls, without suffix."""
    return Component(
        name, read(f"{name}.html"), read(f"{name}.css"), "\n".join(read(f"{each}.js") for each in (*scripts, name))
    )


def read(name: str) -> str:
    """Return the text of a file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


TIME_BAR = component(
    "time_bar", "cell_keys", "figure_zoom", "hidden_curves", "row_names", "tick_labels", "step_marks", "time_keys"
)
FIGURE_FILES = component("figure_files", "clipboard")
