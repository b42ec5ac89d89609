"""bertviz's head view and model view (Vig, 2019) as one HTML document that needs no network and trusts no token.

bertviz draws in a notebook: its JavaScript asks a CDN for require.js, jQuery and d3, and its Python writes token text
into a script as it stands, twice. Here its JavaScript is taken from the installed package, unchanged, and finds in the
document what it asks for: jQuery and d3 out of packages that ship them, require.js as a few lines of our own
(bertviz.js), and the data, once. The packages are found by their metadata and never imported: bertviz would import
torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np

from embryo_core.share.html_document import document

FAINTEST = 0.01  # a link of less weight would be a line of less opacity, which nobody sees: it is left out
COLUMNS = 8  # the model view is as wide as this many heads, or more; ...
COLUMNS_LONG = 12  # ... and for long texts as this many, which makes it less high
LONG = 32  # tokens

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
    """A document, and the height in pixels that it takes."""

    html: str
    height: int


def head_view(
    weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], layer: int, dark: bool = False
) -> Page:
    """All heads of one layer at a time as links between the tokens; it begins with `layer`, one of `layers`.

    `weights` [layers, heads, L, L] in [0, 1] are those of all layers of the model, row = from, column = to. Those of
    `layers`, counted from 1, are embedded, rounded to thousandths. Raises ValueError where the tokens are not L.
    """
    data = _data(weights, tokens, layers) | {"layer": layer, "heads": None}
    scripts = [*_host(), _script(distribution("bertviz"), "bertviz/head_view.js")]
    body = f'<div id="bertviz" class="head {_mode(dark)}">Layer: <select id="layer"></select><div id="vis"></div></div>'
    height = 23 * len(tokens) + 75  # bertviz: 22.5 pixels a token, under the layer and the heads
    return Page(document("bertviz: head view", STYLE, body, data, scripts), height)


def model_view(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int], dark: bool = False) -> Page:
    """All heads of some layers as small pictures, rows = layers, columns = heads; a click shows one large.

    The arguments and errors are those of `head_view`.
    """
    heads = weights.shape[1]
    columns = max(heads, COLUMNS_LONG if len(tokens) > LONG else COLUMNS)
    numbers = list(range(1, heads + 1))
    data = _data(weights, tokens, layers) | {"include_heads": numbers, "total_heads": columns}
    data |= {"display_mode": _mode(dark)}
    scripts = [*_host(), _script(distribution("bertviz"), "bertviz/model_view.js")]
    body = f'<div id="bertviz" class="model {_mode(dark)}"><div id="vis"></div></div>'
    rows = len(layers) * (7 * 12 / columns * len(tokens) + 10) + 38  # bertviz: the pictures with their axes ...
    height = max(rows, 18 * len(tokens) + 55) + 20  # ... or one head, large
    return Page(document("bertviz: model view", STYLE, body, data, scripts), round(height))


def _data(weights: np.ndarray, tokens: Sequence[str], layers: Sequence[int]) -> dict:
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


def _host() -> list[str]:
    """What bertviz expects around it."""
    return [
        _script(distribution("XStatic-jQuery"), "xstatic/pkg/jquery/data/jquery.min.js"),
        _script(distribution("mpld3"), "mpld3/js/d3.v5.min.js"),
        Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    ]


def _script(package: Distribution, path: str) -> str:
    """A file of an installed package."""
    return Path(package.locate_file(path)).read_text(encoding="utf-8")
