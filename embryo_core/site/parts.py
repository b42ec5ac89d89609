"""The parts of a page of a static site, which are figures with choices and tables, and the files with their data."""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
from plotly.io.json import to_json_plotly

from embryo_core.browser.component import HEAD_GRID, HEAD_HISTORY, Component
from embryo_core.curves.step_scales import Scale
from embryo_core.errors import EmbryoError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.downsampling import longest
from embryo_core.figures.figure import Caption, Figure, citation, small_print
from embryo_core.figures.file_layout import map_sizes
from embryo_core.figures.smoothing import WINDOWS
from embryo_core.types import Run

MAX_COMPARISON_CHOICES = 3  # at most this number of choices of a panel with several runs; a single run has all choices
MIN_LENGTH = 40  # characters: shorter parts of data are written in place, since a reference would save little
Runs = Sequence[Run]


@dataclass(frozen=True)
class Drawing:
    """The data of a browser component, with title and caption like a figure's, and a table of its numbers, if any."""

    component: Component
    payload: bytes
    name: str  # prefix of its files' names
    title: str
    caption: Caption
    run: Run
    note: str = ""  # small print on the data that are shown
    headline: str = ""
    table: pd.DataFrame | None = None
    missing: tuple[str, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """Return the data with which the browser draws the component, and saves its attention maps as pictures."""
        runs = [self.run.name]
        return {
            "name": self.name,
            "csv": "" if self.table is None else self.table.to_csv(index=False),
            "citation": citation(self.title, runs, self.caption),
            "component": self.component.name,
            "payload": base64.b64encode(self.payload).decode(),
            "maps": map_sizes(small_print(runs, self.note)) if self.component in (HEAD_GRID, HEAD_HISTORY) else None,
        }


@dataclass(frozen=True)
class Panel:
    """A figure with its choices: the function that makes it, and the function's options for each choice, by label."""

    name: str  # name in URLs
    make: Callable[..., Figure | Drawing]
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    what: str = ""  # label of the choices
    alone: bool = False  # in a comparison, shown for the first run only
    each: bool = False  # in a comparison, shown for each run side by side

    def write(self, runs: Runs, key: str, folder: Path) -> dict[str, Any] | None:
        """Write the data of each choice, and return the panel's entry on the page; None without choices."""
        if self.alone and len(runs) > 1:
            return {"name": self.name, "each": self.each, "alone": True}
        labels = islice(self.choices, None if len(runs) == 1 else MAX_COMPARISON_CHOICES)
        choices = [self._write_choice(label, runs, f"{key}-{self.name}-{i}", folder) for i, label in enumerate(labels)]
        return {"name": self.name, "what": self.what, "each": self.each, "choices": choices} if choices else None

    def _write_choice(self, label: str, runs: Runs, key: str, folder: Path) -> dict[str, Any]:
        """Write the data of a choice, and return its entry, or an entry with the reason why it has no figure."""
        try:
            figure = self.make(runs, AxisChoice("log"), **self.choices[label])
            data = figure.data if isinstance(figure, Drawing) else self._figure_data(figure, runs, self.choices[label])
        except EmbryoError as error:
            return {"label": label, "title": label or self.name.capitalize(), "why": str(error), "headline": ""}
        write_data(folder, key, data)
        described = {"title": figure.title, "headline": figure.headline, "missing": figure.missing}
        return {"label": label, "file": key, **described, **_describe_caption(figure.caption)}

    def _figure_data(self, figure: Figure, runs: Runs, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data with which the browser draws a figure on each scale of steps, and saves it."""
        is_logarithmic = any(axis.type == "log" for axis in figure.plot.select_xaxes())
        linear: Any = self.make(runs, AxisChoice("linear"), **options) if is_logarithmic else figure
        by_scale: dict[Scale, Figure] = {"log": figure, "linear": linear}
        plots: dict[Scale, dict[int, Any]] = {}  # by scale of steps and window of smoothing; 1 is as measured
        for scale, measured in by_scale.items():
            windows = (
                WINDOWS[1:] if longest(measured.plot) else ()
            )  # the browser smooths curves that are not downsampled
            axes = {window: AxisChoice(scale, smoothing=window) for window in windows}
            figures: dict[int, Any] = {1: measured}
            figures |= {window: self.make(runs, axis, **options) for window, axis in axes.items()}
            plots[scale] = {
                window: without_template(figure.plot.to_plotly_json()) for window, figure in figures.items()
            }
        return {
            "name": figure.file_name,
            "csv": figure.to_csv(),
            "citation": figure.citation,
            "plots": plots,
            "files": {
                scale: {columns: without_template(size) for columns, size in measured.file_sizes.items()}
                for scale, measured in by_scale.items()
            },
        }


@dataclass(frozen=True)
class FixedTable:
    """A table that does not change with the step."""

    title: str
    table: pd.DataFrame
    caption: Caption
    alone: bool = False  # shown for the first run only in a comparison; loaded when it is opened

    def write(self, runs: Runs, key: str, folder: Path) -> dict[str, Any] | None:
        """Return the table's entry on the page, None if it is empty; write the rows of one that is loaded on demand."""
        if self.alone and len(runs) > 1:
            return {"name": self.title, "alone": True}
        if self.table.empty:
            return None
        entry = {"name": self.title, "title": self.title, "columns": [*self.table], **_describe_caption(self.caption)}
        if not self.alone:
            return entry | {"rows": [[_cell(value) for value in row] for row in self.table.itertuples(index=False)]}
        rows = [[_number(value) for value in row] for row in self.table.itertuples(index=False)]
        key = f"{key}-{hashlib.sha256(self.title.encode()).hexdigest()[:8]}"
        write_data(folder, key, rows)
        return entry | {"file": key, "count": len(rows)}


@dataclass(frozen=True)
class SitePage:
    """The content of a page for some runs."""

    headline: str
    parts: Sequence[Panel | FixedTable]
    metric: str = ""  # prefix of metrics; playing stops only at steps at which they have data; "" for all steps


def without_template(plot: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plot, or another value with a layout, without plotly's template, which a site stores once."""
    return {**plot, "layout": {name: value for name, value in plot["layout"].items() if name != "template"}}


def _describe_caption(caption: Caption) -> dict[str, str]:
    return {"summary": caption.summary, "rest": str(caption)[len(caption.summary) :].strip()}


def _number(value: Any) -> Any:
    """Return a table's value for the browser: "" if missing, floats with six significant digits, others unchanged."""
    if pd.isna(value):
        return ""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _cell(value: Any) -> str:
    """Return a table's value as text: "" if missing, floats with four significant digits."""
    if pd.isna(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


# === Files of data ===


def write_data(folder: Path, key: str, value: Any) -> None:
    """Write a script that passes a value to the page under a key; numpy arrays and plotly figures become plain JSON.

    The value is compressed, and its repeated parts, such as the numbers of a curve, are written once: {"$": i} refers
    to the i-th of these (see `add` in site.js).
    """
    indices: dict[str, int] = {}
    value = _replace_long_parts(json.loads(to_json_plotly(value)), indices)
    text = f'{{"parts":[{",".join(indices)}],"value":{_text(value)}}}'
    content = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    path = folder / "data" / f"{key}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'embryo.add({json.dumps(key)}, "{content}");\n', encoding="utf-8")


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
