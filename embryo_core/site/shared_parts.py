"""Pack values as compressed scripts in which repeated parts, such as the numbers of a curve, are written once."""

import base64
import gzip
import json
from typing import Any

from plotly.io.json import to_json_plotly

MIN_LENGTH = 40  # characters: shorter parts are written in place, since a reference would save little


def script(key: str, value: Any) -> str:
    """Return a script that passes `value` to the page under a key; numpy arrays and plotly figures become plain JSON.

    In it, {"$": i} refers to the i-th shared part (see `add` in site.js).
    """
    indices: dict[str, int] = {}
    value = _replace_long_parts(json.loads(to_json_plotly(value)), indices)
    text = f'{{"parts":[{",".join(indices)}],"value":{_text(value)}}}'
    content = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'embryo.add({json.dumps(key)}, "{content}");\n'


def _replace_long_parts(value: Any, indices: dict[str, int]) -> Any:
    """Replace long parts of a value by references, and collect the text of each in `indices`, with its index."""
    if isinstance(value, dict):
        value = {name: _replace_long_parts(part, indices) for name, part in value.items()}
    elif isinstance(value, list):
        if any(isinstance(part, dict | list) for part in value):
            value = [_replace_long_parts(part, indices) for part in value]
    elif not isinstance(value, str):
        return value
    text = _text(value)
    return value if len(text) < MIN_LENGTH else {"$": indices.setdefault(text, len(indices))}


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
