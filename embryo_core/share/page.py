"""A film as one HTML page that plays by itself, with a slider and the weight under the pointer; it needs no network."""

import base64
from pathlib import Path

import numpy as np

from embryo_core.share.animation import DECADES, VIRIDIS, Film, legend
from embryo_core.share.html_document import document

CODES = 65535  # a weight is stored as a share of the largest, in as many parts

STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; max-width: 36rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; }
.bar { display: flex; align-items: center; gap: 0.6rem; }
.bar input { flex: 1; }
#step { min-width: 6.5rem; text-align: right; font-weight: 600; font-variant-numeric: tabular-nums; }
canvas { display: block; max-width: 100%; }
#map { margin-top: 0.5rem; }
#hover { min-height: 1.5em; font-variant-numeric: tabular-nums; }
#legend { width: 13rem; display: flex; flex-wrap: wrap; justify-content: space-between; font-size: 0.85rem; }
#legend canvas { width: 100%; height: 12px; }
#note { opacity: 0.75; font-size: 0.9rem; }
"""
BODY = """
<h1 id="title"></h1>
<div class="bar">
  <button id="play" type="button" aria-label="Play">▶</button>
  <input id="scrub" type="range" min="0" value="0" step="1" aria-label="Checkpoint">
  <output id="step"></output>
</div>
<canvas id="map" role="img"></canvas>
<div id="hover"></div>
<div id="legend"></div>
<p id="note"></p>
"""


def html_page(film: Film, scale: str = "linear") -> str:
    """The page; `scale` of the colours is "linear" or "log". Weights are kept to 1/65535 of the largest."""
    largest = float(film.weights.max()) or 1.0
    codes = np.rint(film.weights / largest * CODES).astype("<u2")
    data = {
        "title": film.title,
        "note": f"{film.note}. The colours ({scale}) run to this head's largest weight over all {len(codes)} steps.",
        "steps": film.steps.tolist(),
        "size": film.weights.shape[-1],
        "largest": largest,
        "codes": base64.b64encode(codes.tobytes()).decode(),
        "colours": VIRIDIS.tolist(),
        "legend": legend(film, scale),
        "decades": DECADES if scale == "log" else None,
        "tokens": list(film.tokens),
    }
    script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return document(film.title, STYLE, BODY, data, [script])
