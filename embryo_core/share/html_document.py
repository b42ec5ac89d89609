"""An HTML document with its scripts and data inside: it needs no network, and no text in its data becomes markup.

The data are embedded as JSON without a single "<". The document's security policy names the hashes of its scripts and
allows no other script and no request.
"""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from typing import Any


def document(title: str, style: str, body: str, data: Any, scripts: Sequence[str]) -> str:
    """Return the document. `title` and `data` may hold any text; `style`, `body` (markup) and `scripts` are trusted.

    A script reads `data` as `JSON.parse(document.getElementById("data").textContent)`.
    """
    embedded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {' '.join(map(_hash, scripts))}"
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


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
