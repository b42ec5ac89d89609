"""bertviz's head view and model view (Vig, 2019) as one HTML document that needs no network and trusts no token.

bertviz draws in a notebook: its JavaScript asks a CDN for require.js, jQuery and d3, and its Python writes token text
into a script as it stands, twice. Here its JavaScript is taken from the installed package, unchanged, and gets what it
asks for from the document itself: jQuery and d3 out of packages that ship them, require.js as a few lines of our own
(bertviz_page.js), and the data once, as JSON in which no "<" is left. The document's own security policy names the
hashes of these scripts and allows nothing else, neither another script nor a request.

The packages are found by their metadata and never imported: bertviz would import torch.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

VIEWS = {"head": "bertviz/head_view.js", "model": "bertviz/model_view.js"}
FAINTEST = 0.01  # a link of less weight would be a line of less opacity, which nobody sees: it is left out
LEGIBLE = 12  # the model view scales its pictures to this many heads beside each other, or more

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; font-family: "Helvetica Neue", Helvetica, Arial, sans-serif; font-size: 15px; }
body.dark { color: #fafafa; }
body.light { color: #222; }
svg { overflow: visible; }
svg text { fill: currentColor; }
#bertviz { padding: 4px; }
#bertviz.head { padding-left: 60px; }
"""


def page(
    view: str,
    weights: np.ndarray,
    tokens: Sequence[str],
    layers: Sequence[int],
    layer: int | None = None,
    dark: bool = False,
) -> str:
    """The document that shows some layers of one sentence's attention.

    `view` is "head" or "model"; `weights` [layers, heads, L, L] in [0, 1] holds all layers of the model, row = from,
    column = to, and is rounded to thousandths; `tokens` names the L positions; `layers` are those to embed, counted from
    1, and `layer`, one of them, is where the head view begins. Raises ValueError for tokens that are not L.
    """
    if len(tokens) != weights.shape[-1]:
        raise ValueError(f"{len(tokens)} tokens for weights of {weights.shape[-1]} positions")
    heads = weights.shape[1]
    chosen = weights[[number - 1 for number in layers]]
    data = {
        "weights": np.rint(chosen * 1000).astype(int).ravel().tolist(),
        "shape": chosen.shape[:3],
        "tokens": list(tokens),
        "faintest": FAINTEST,
        "include_layers": list(layers),
        "include_heads": list(range(1, heads + 1)),
        "total_heads": max(heads, LEGIBLE),
        "layer": layer,
        "heads": None,
        "default_filter": "0",
        "display_mode": "dark" if dark else "light",
        "root_div_id": "bertviz",
    }
    scripts = [_jquery(), _d3(), Path(__file__).with_suffix(".js").read_text(encoding="utf-8"), _bertviz(view)]
    return _document(view, data, scripts, dark)


def _document(view: str, data: dict, scripts: list[str], dark: bool) -> str:
    embedded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {' '.join(map(_hash, scripts))}"
    picker = 'Layer: <select id="layer"></select>' if view == "head" else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<style>{STYLE}</style></head>",
            f'<body class="{data["display_mode"]}">',
            f'<div id="bertviz" class="{view}">{picker}<div id="vis"></div></div>',
            f'<script type="application/json" id="data">{embedded}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>",
        ]
    )


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


# === Scripts of installed packages ===


def _jquery() -> str:
    return _script("XStatic-jQuery", "xstatic/pkg/jquery/data/jquery.min.js")


def _d3() -> str:
    return _script("mpld3", "mpld3/js/d3.v5.min.js")


def _bertviz(view: str) -> str:
    return _script("bertviz", VIEWS[view])


@cache
def _script(package: str, path: str) -> str:
    return Path(distribution(package).locate_file(path)).read_text(encoding="utf-8")
