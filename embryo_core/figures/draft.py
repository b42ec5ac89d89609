"""A figure as plain values, for pages that draw a new one at every visit: Plotly's validation is slow."""

from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio


class AttributeDict(dict):
    """A part of a figure, such as a trace or an axis; items are also attributes, None if missing."""

    def __missing__(self, name: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def to_plotly_json(self) -> dict[str, Any]:
        """Return a copy in plain values, as Plotly's classes do; lists of numbers or names are not copied."""
        return _copy(self)


class Draft:
    """The methods of go.Figure that drawing functions need, without its validation (see `to_plotly`)."""

    def __init__(self, traces: Iterable[Mapping[str, Any]] = ()):
        self.data = [_to_attribute_dict({"type": "scatter", **trace}) for trace in traces]
        template = {"template": _load_template(pio.templates.default)} if pio.templates.default else {}
        self.layout = AttributeDict(template, xaxis=AttributeDict(), yaxis=AttributeDict(), shapes=[], annotations=[])

    def to_dict(self) -> dict[str, Any]:
        """Return the figure in plain values."""
        return {"data": _copy(self.data), "layout": _copy(self.layout)}

    def to_plotly(self) -> go.Figure:
        """Return the figure as Plotly's own class. Raises ValueError for a setting that Plotly does not know."""
        return go.Figure(self.to_dict())

    def add_scatter(self, **trace: Any) -> None:
        self.data.append(_to_attribute_dict({"type": "scatter", **trace}))

    def add_heatmap(self, **trace: Any) -> None:
        self.data.append(_to_attribute_dict({"type": "heatmap", **trace}))

    def add_shape(self, **shape: Any) -> None:
        self.layout.shapes.append(_to_attribute_dict(_to_python(shape)))

    def add_annotation(self, **annotation: Any) -> None:
        self.layout.annotations.append(_to_attribute_dict(_to_python(annotation)))

    def update_layout(self, changes: Mapping[str, Any] | None = None, overwrite: bool = True, **more: Any) -> "Draft":
        """Set parts of the layout; unlike in Plotly, they always replace the previous ones."""
        self.layout |= _to_attribute_dict(_to_python({**(changes or {}), **more}))
        return self

    def select_xaxes(self) -> Iterable[Any]:
        """Return the x-axis in the form that `style.set_axes` reads."""
        return [SimpleNamespace(plotly_name="xaxis", to_plotly_json=self.layout.xaxis.to_plotly_json)]

    def select_yaxes(self) -> Iterable[Any]:
        """Return the y-axis in the form that `style.set_axes` reads."""
        return [SimpleNamespace(plotly_name="yaxis", to_plotly_json=self.layout.yaxis.to_plotly_json)]


def _to_attribute_dict(values: Mapping[str, Any]) -> AttributeDict:
    """Return values as a part: `{"line_width": 1}` means `{"line": {"width": 1}}`, and None means unset."""
    part = AttributeDict()
    for name, value in values.items():
        if value is None:
            continue
        name, _, inner_name = name.partition("_")
        value = {inner_name: value} if inner_name else value
        if isinstance(value, Mapping):
            value = _to_attribute_dict(value)
            value = AttributeDict(part[name] | value) if name in part else value
        part[name] = value.to_numpy() if isinstance(value, pd.Series) else value
    return part


def _to_python(value: Any) -> Any:
    """Return a setting of the layout without NumPy numbers, which Python's json cannot write to files."""
    if isinstance(value, Mapping):
        return {name: _to_python(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_to_python, value)]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _copy(value: Any) -> Any:
    """Return nested settings as a copy, except for the template and lists of numbers or names."""
    if isinstance(value, dict):
        return {name: item if name == "template" else _copy(item) for name, item in value.items()}
    return [*map(_copy, value)] if isinstance(value, list) and value and isinstance(value[0], dict) else value


@cache
def _load_template(name: str) -> dict[str, Any]:
    """Return a template of Plotly in plain values; it is shared by all drafts."""
    return pio.templates[name].to_plotly_json()
