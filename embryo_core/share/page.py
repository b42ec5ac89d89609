"""HTML documents without network access, and a head's history as an animation: such a document, or a GIF."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core.curves.step_scales import Scale
from embryo_core.errors import ResultsError
from embryo_core.share import map_style
from embryo_core.share.gif import gif_bytes
from embryo_core.share.head_history import HeadHistory

SUFFIXES = (".gif", ".html")  # suffixes of an animation
FRAME = 'width="100%" height="740" style="border: 0"'  # attributes of the frame in a notebook
MAX_CODE = 65535  # code of the largest weight; a weight is stored as a 16-bit share of it

STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; max-width: 36rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; }
.bar { display: flex; align-items: center; gap: 0.6rem; }
.bar input { flex: 1; min-width: 0; }
#step { min-width: 6.5rem; text-align: right; font-weight: 600; font-variant-numeric: tabular-nums; }
canvas { display: block; }
#map { margin-top: 0.5rem; }
#hover { min-height: 1.5em; font-variant-numeric: tabular-nums; }
#note { opacity: 0.75; font-size: 0.9rem; }
"""
BODY = """
<main>
<h1 id="title"></h1>
<div class="bar">
  <button id="play" type="button" aria-label="Play">▶</button>
  <input id="scrub" type="range" min="0" value="0" step="1" aria-label="Checkpoint">
  <output id="step"></output>
</div>
<canvas id="map" role="img"></canvas>
<div id="hover"></div>
<canvas id="legend" role="img"></canvas>
<p id="note"></p>
</main>
"""


def document(title: str, style: str, body: str, data: Any, scripts: Sequence[str]) -> str:
    """Return an HTML document with embedded scripts and data, in which no text of the data can become markup.

    The data are embedded as JSON without any "<". The content security policy allows only these scripts, by their
    hashes, and no requests. `title` and `data` may contain any text; `style`, `body` (markup) and `scripts` are
    trusted. A script reads `data` with `JSON.parse(document.getElementById("data").textContent)`.
    """
    embedded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    script_sources = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {script_sources}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{style}</style></head>",
            f"<body>{body}",
            f'<script type="application/json" id="data">{embedded}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>",
        ]
    )


def html_page(history: HeadHistory, scale: Scale = "linear") -> str:
    """Return a page that plays a head's history, with colours on this scale; weights are stored up to `MAX_CODE`."""
    codes = np.rint(history.weights / history.maximum * MAX_CODE).astype("<u2")
    data = map_style.drawing(history, scale) | {
        "note": f"{history.note}. Scale: {scale}. {map_style.clipping(history)}",
        "codes": base64.b64encode(codes.tobytes()).decode(),
    }
    scripts = [path.read_text(encoding="utf-8") for path in (map_style.SCRIPT, Path(__file__).with_suffix(".js"))]
    return document(history.title, STYLE, BODY, data, scripts)


@dataclass(frozen=True)
class Animation:
    """A head's history that plays: a notebook displays its page, and `save` writes it as a GIF or as a page."""

    history: HeadHistory
    scale: Scale = "linear"

    def save(self, path: str | Path) -> Path:
        """Write the animation as .gif or .html. Raises ResultsError for another suffix or an unwritable path."""
        path = Path(path)
        check_suffix(path)
        is_gif = path.suffix.lower() == ".gif"
        content = gif_bytes(self.history, self.scale) if is_gif else html_page(self.history, self.scale).encode()
        try:
            path.write_bytes(content)
        except OSError as reason:
            raise ResultsError(f"{path} cannot be written ({reason.strerror}); give another path.") from None
        return path

    def _repr_html_(self) -> str:
        """Return the page in a frame, in which its styles and scripts do not meet those of the notebook."""
        page = html.escape(html_page(self.history, self.scale))
        return f'<iframe srcdoc="{page}" title="{html.escape(self.history.title)}" {FRAME}></iframe>'


def check_suffix(path: Path) -> None:
    """Raise ResultsError unless the suffix is .gif or .html."""
    if path.suffix.lower() not in SUFFIXES:
        raise ResultsError(f"'{path}' ends in none of {', '.join(SUFFIXES)}; an animation is written as one of these.")
