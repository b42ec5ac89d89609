"""bertviz's head view and model view (Vig, 2019) as one HTML document without network access, with escaped tokens.

In a notebook, bertviz loads require.js, jQuery and d3 from a CDN, and writes the tokens unescaped into a script, twice.
Here its unchanged JavaScript is read from the installed package and embedded with its dependencies: jQuery and d3 from
installed packages that contain them, and a few lines in place of require.js (bertviz.js). The data are embedded once.
The packages are located by their metadata and never imported, because bertviz imports torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core.share.page import document

MIN_WEIGHT = 0.01  # smallest weight of a link that is drawn: fainter lines are invisible
MIN_COLUMNS = 8  # smallest width of the model view, in heads
MIN_COLUMNS_LONG = 12  # the same for texts of more than LONG_TEXT tokens, so that the view is less tall
LONG_TEXT = 32  # tokens

STYLE = """
body { margin: 0; font-family: "Helvetica Neue", Helvetica, Arial, sans-serif; font-size: 15px; }
svg { overflow: visible; }
svg text { fill: currentColor; }
#bertviz { padding: 4px; }
#bertviz.head { padding-left: 50px; }
#bertviz.light { color: #222; }
#bertviz.dark { color: #fafafa; }
:root:has(#bertviz.dark) { color-scheme: dark; } /* as the page around it: a frame of another scheme is opaque white */
"""


@dataclass(frozen=True)
class HtmlDocument:
    """An HTML document, and its height in pixels."""

    html: str
    height: int


def head_view(
    weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], layer: int, dark: bool = False
) -> HtmlDocument:
    """Draw all heads of one layer at a time as links between the tokens, beginning with `layer`, one of `layers`.

    `weights` [layers, heads, L, L] in [0, 1] cover all layers of the model, row = from, column = to. The document
    contains only the weights of `layers`, counted from 1, rounded to thousandths. Raises ValueError unless there are L
    tokens.
    """
    data = _data(weights, tokens, layers) | {"layer": layer, "heads": None}
    scripts = _scripts("head_view.js")
    body = f'<div id="bertviz" class="head {_mode(dark)}">Layer: <select id="layer"></select><div id="vis"></div></div>'
    height = 23 * len(tokens) + 75  # bertviz draws 22.5 pixels per token, below the choices of layer and heads
    return HtmlDocument(document("bertviz: head view", STYLE, body, data, scripts), height)


def model_view(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], dark: bool = False) -> HtmlDocument:
    """Draw all heads of `layers` as small pictures, which a click enlarges; arguments and errors as for `head_view`."""
    heads = weights.shape[1]
    columns = max(heads, MIN_COLUMNS_LONG if len(tokens) > LONG_TEXT else MIN_COLUMNS)
    numbers = list(range(1, heads + 1))
    data = _data(weights, tokens, layers) | {"include_heads": numbers, "total_heads": columns}
    data |= {"display_mode": _mode(dark)}
    scripts = _scripts("model_view.js")
    body = f'<div id="bertviz" class="model {_mode(dark)}"><div id="vis"></div></div>'
    rows = len(layers) * (7 * 12 / columns * len(tokens) + 10) + 38  # the height of bertviz's small pictures with axes
    height = max(rows, 18 * len(tokens) + 55) + 20  # must also fit one enlarged head
    return HtmlDocument(document("bertviz: model view", STYLE, body, data, scripts), round(height))


def _data(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int]) -> dict[str, Any]:
    """Return the data that both views read: weights in thousandths, tokens and settings."""
    if len(tokens) != weights.shape[-1]:
        raise ValueError(f"{len(tokens)} tokens for weights of {weights.shape[-1]} positions")
    selected = weights[[layer - 1 for layer in layers]]
    return {
        "weights": np.rint(selected * 1000).astype(int).ravel().tolist(),
        "shape": selected.shape[:3],
        "tokens": list(tokens),
        "faintest": MIN_WEIGHT,
        "include_layers": list(layers),
        "default_filter": "0",
        "root_div_id": "bertviz",
    }


def _mode(dark: bool) -> str:
    return "dark" if dark else "light"


def _scripts(view: str) -> list[str]:
    """Return the scripts of a view in loading order: its dependencies, then its own file."""
    files = (
        distribution("XStatic-jQuery").locate_file("xstatic/pkg/jquery/data/jquery.min.js"),
        distribution("mpld3").locate_file("mpld3/js/d3.v5.min.js"),
        Path(__file__).with_suffix(".js"),
        distribution("bertviz").locate_file(f"bertviz/{view}"),
    )
    return [Path(str(file)).read_text(encoding="utf-8") for file in files]
