"""bertviz's head view and model view (Vig, 2019) as one HTML document without network access, with escaped tokens.

In a notebook bertviz loads require.js, jQuery and d3 from a CDN, and writes the text of tokens into a script unescaped,
twice. Here its JavaScript is read from the installed package, unchanged. Its dependencies are in the document: jQuery
and d3 from installed packages that contain them, a few lines in place of require.js (bertviz.js), and the data, once.
The packages are located by their metadata and never imported, because bertviz imports torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core.share.page import document

FAINTEST = 0.01  # least weight of a link that is drawn: fainter lines are invisible
COLUMNS = 8  # least width of the model view, in heads
COLUMNS_LONG = 12  # the same for texts of more than LONG tokens, so that the view is less tall
LONG = 32

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
class Page:
    """A document, and its height in pixels."""

    html: str
    height: int


def head_view(
    weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], layer: int, dark: bool = False
) -> Page:
    """Draw all heads of one layer at a time as links between the tokens, at first of `layer`, one of `layers`.

    `weights` [layers, heads, L, L] in [0, 1] are those of all layers of the model, row = from, column = to. The
    document contains those of `layers`, counted from 1, rounded to thousandths. Raises ValueError if there are not L
    tokens.
    """
    data = _data(weights, tokens, layers) | {"layer": layer, "heads": None}
    scripts = _scripts("head_view.js")
    body = f'<div id="bertviz" class="head {_mode(dark)}">Layer: <select id="layer"></select><div id="vis"></div></div>'
    height = 23 * len(tokens) + 75  # bertviz: 22.5 pixels per token, under the layer and the heads
    return Page(document("bertviz: head view", STYLE, body, data, scripts), height)


def model_view(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], dark: bool = False) -> Page:
    """Draw all heads of layers as small pictures, which a click enlarges; arguments as for `head_view`."""
    heads = weights.shape[1]
    columns = max(heads, COLUMNS_LONG if len(tokens) > LONG else COLUMNS)
    numbers = list(range(1, heads + 1))
    data = _data(weights, tokens, layers) | {"include_heads": numbers, "total_heads": columns}
    data |= {"display_mode": _mode(dark)}
    scripts = _scripts("model_view.js")
    body = f'<div id="bertviz" class="model {_mode(dark)}"><div id="vis"></div></div>'
    rows = len(layers) * (7 * 12 / columns * len(tokens) + 10) + 38  # bertviz: the pictures with their axes ...
    height = max(rows, 18 * len(tokens) + 55) + 20  # ... or one head, large
    return Page(document("bertviz: model view", STYLE, body, data, scripts), round(height))


def _data(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int]) -> dict[str, Any]:
    if len(tokens) != weights.shape[-1]:
        raise ValueError(f"{len(tokens)} tokens for weights of {weights.shape[-1]} positions")
    chosen = weights[[layer - 1 for layer in layers]]
    return {
        "weights": np.rint(chosen * 1000).astype(int).ravel().tolist(),
        "shape": chosen.shape[:3],
        "tokens": list(tokens),
        "faintest": FAINTEST,
        "include_layers": list(layers),
        "default_filter": "0",
        "root_div_id": "bertviz",
    }


def _mode(dark: bool) -> str:
    return "dark" if dark else "light"


def _scripts(view: str) -> list[str]:
    """Return the scripts of a view in their order: its dependencies, and its own file."""
    files = (
        distribution("XStatic-jQuery").locate_file("xstatic/pkg/jquery/data/jquery.min.js"),
        distribution("mpld3").locate_file("mpld3/js/d3.v5.min.js"),
        Path(__file__).with_suffix(".js"),
        distribution("bertviz").locate_file(f"bertviz/{view}"),
    )
    return [Path(str(file)).read_text(encoding="utf-8") for file in files]
