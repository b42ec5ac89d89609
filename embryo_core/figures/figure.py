"""The value that figures return: a plotly figure with its title, the table of its numbers, and its caption."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from embryo_core import results
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.families import ENCODERS
from embryo_core.figures.downsampling import longest
from embryo_core.figures.draft import Draft
from embryo_core.figures.file_layout import SIZES, lay_out_file
from embryo_core.figures.smoothing import WINDOW
from embryo_core.findings.words import equivalent_metric
from embryo_core.metrics import METRICS
from embryo_core.metrics.treebank_words import AS_WRITTEN, READ_AS_TEXT
from embryo_core.types import Run

CREDIT = "Embryo, after Chiang, Huang and Lee (2020)."
BIBTEX = """\
@inproceedings{chiang-etal-2020-pretrained,
  title = {Pretrained Language Model Embryology: The Birth of {ALBERT}},
  author = {Chiang, Cheng-Han and Huang, Sung-Feng and Lee, Hung-yi},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year = {2020},
  pages = {6813--6828},
  doi = {10.18653/v1/2020.emnlp-main.553}
}"""
METRIC_NEEDS = {metric.name: metric.needs for metric in METRICS} | {"finetuning": frozenset({"trainable"})}
INTEGER_COLUMNS = ("n", "seeds", "layer")  # columns of integers, even with missing values; so are all columns n_...
IMAGE_SUFFIXES = {".svg": "svg", ".png": "png"}


@dataclass(frozen=True)
class Caption:
    """The text below a figure, in plain text: the app escapes it once, where it shows it."""

    summary: str  # one sentence: what is drawn
    details: str = ""  # what lines and bands mean, what was left out
    data: str = ""  # the data behind the numbers, with n
    hint: str = ""  # what a click does; left out of files

    @property
    def rest(self) -> str:
        """Return everything after the summary."""
        return " ".join(part for part in (self.details, self.data, self.hint) if part)

    def __str__(self) -> str:
        """Return the caption for print, without the hint."""
        return " ".join(part for part in (self.summary, self.details, self.data) if part)


@dataclass(frozen=True, eq=False)
class Figure:
    """A plotly figure, the table of its numbers, and its text; not modified after a figure function returns it."""

    name: str  # prefix of its files' names, unique on a page
    title: str
    chart: go.Figure | Draft
    table: pd.DataFrame  # a row for each drawn point
    caption: Caption
    runs: tuple[str, ...]  # names of the runs
    data: Mapping[str, str] = field(default_factory=dict)  # data behind the results of each run
    headline: str = ""  # the result in one sentence, computed from the table
    missing: tuple[str, ...] = ()  # requested runs without data, or without the unit of the axis
    drawing: str = ""  # how curves were smoothed and downsampled; also in the caption
    suffix: str = ""  # part of the run that the numbers belong to, such as "step1000"; "" for all of it

    @cached_property
    def plot(self) -> go.Figure:
        """Return the plot as Plotly's own class."""
        return self.chart.to_plotly() if isinstance(self.chart, Draft) else self.chart

    @property
    def first_table(self) -> pd.DataFrame:
        """Return the rows of the first line of a figure of curves: those of a run, or of the mean of some seeds."""
        return self.table[self.table["run"] == self.table["run"].iloc[0]]

    @property
    def file_name(self) -> str:
        """Return the name of the figure's files, without a suffix."""
        return f"{self.name}-{self.suffix}" if self.suffix else self.name

    @property
    def small_print(self) -> str:
        """Return the line below the figure in a file: runs, data, and the paper."""
        notes = {*self.data.values()} - {""}
        return small_print(self.runs, next(iter(notes)) if len(notes) == 1 else "", self.drawing)

    @property
    def citation(self) -> str:
        """Return title, runs, caption and the BibTeX of the paper, to paste next to the figure."""
        return citation(self.title, self.runs, self.caption)

    def to_csv(self) -> str:
        """Return the table as CSV; each row names its run and data, and counts are integers."""
        table = self.table if "run" in self.table else self.table.assign(run=", ".join(self.runs))
        distinct_notes = {*self.data.values()}
        notes = table["run"].map(dict(self.data)).fillna(distinct_notes.pop() if len(distinct_notes) == 1 else "")
        notes = table["data"].fillna(notes) if "data" in table else notes
        count_columns = [
            name
            for name, dtype in table.dtypes.items()
            if dtype == float and (name in INTEGER_COLUMNS or str(name).startswith("n_"))
            if (table[name].dropna() % 1 == 0).all()  # a mean over seeds may be no integer
        ]
        table = table.astype(dict.fromkeys(count_columns, "Int64"))
        return (table.assign(data=notes) if notes.any() else table).to_csv(index=False)

    @cached_property
    def file_sizes(self) -> dict[str, Any]:
        """Return what a browser needs to draw SVG and PNG by size: inches, layout, kept columns, long legend names."""
        return {
            columns: {
                "inches": size.inches,
                **lay_out_file(self.chart, columns, self.title, self.small_print)._asdict(),
            }
            for columns, size in SIZES.items()
        }

    def save(self, path: str | Path, columns: str = "two") -> Path:
        """Write the figure as .svg or .png (laid out for a paper), .html (interactive) or .csv (its table).

        SVG and PNG are drawn by kaleido in an installed Chrome or Chromium. Raises FigureError.
        """
        path = Path(path)
        if path.suffix == ".csv":
            path.write_text(self.to_csv(), encoding="utf-8")
        elif path.suffix == ".html":
            plot = go.Figure(self.plot).update_layout(title=self.title, margin={"t": 100})
            path.write_text(plot.to_html(include_plotlyjs=True), encoding="utf-8")
        elif path.suffix in IMAGE_SUFFIXES:
            self._draw(path, columns)
        else:
            raise FigureError(f"'{path.name}' has no suffix of a figure; save it as .svg, .png, .html or .csv.")
        return path

    def _draw(self, path: Path, columns: str) -> None:
        size = SIZES[columns]
        dpi = 300 if path.suffix == ".png" else 96  # dots per inch
        plot = lay_out_file(self.plot, columns, self.title, self.small_print).draw(self.plot)
        try:
            plot.write_image(path, scale=size.inches * dpi / size.pixels)
        except (ImportError, RuntimeError, ValueError) as error:
            raise FigureError(
                f"'{path.name}' was not written: {type(error).__name__} from kaleido. SVG and PNG need kaleido "
                "(pip install kaleido) and Chrome or Chromium (its path in BROWSER_PATH); .html and .csv need neither."
            ) from error

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return what notebooks display: the plot as plotly's JSON and as HTML, title and caption as text."""
        return {
            "application/vnd.plotly.v1+json": json.loads(self.plot.to_json()),
            "text/html": self.plot.to_html(full_html=False, include_plotlyjs="cdn"),
            "text/plain": f"{self.title}\n\n{self.caption}",
        }


def small_print(run_names: Sequence[str], note: str, more: str = "") -> str:
    """Return the line below a figure in a file: runs, data (`note`), `more`, and the paper."""
    return sentences(f"{_name_runs(run_names)}{f'; {note}' if note else ''}.", more, CREDIT)


def citation(title: str, run_names: Sequence[str], caption: Caption) -> str:
    """Return the text that is copied with a figure: title, runs, caption, and the BibTeX of the paper."""
    return f"{title}{'' if title.endswith('.') else '.'} {_name_runs(run_names)}. {caption}\n\n{BIBTEX}\n"


def _name_runs(run_names: Sequence[str]) -> str:
    return f"Run{'s' if len(run_names) > 1 else ''} {', '.join(run_names)}"


def make_figure(
    runs: Sequence[Run],
    name: str,
    title: str,
    plot: go.Figure | Draft,
    table: pd.DataFrame,
    caption: Caption,
    metric: str = "",
    **fields: Any,
) -> Figure:
    """Return the Figure of some runs, whose caption also has notes on smoothing, downsampling, measures and networks.

    `metric` names the metric whose results are drawn, if any. `fields` are other fields of Figure.
    """
    smoothing_note = downsampling_note = ""
    if WINDOW in table:
        window = table[WINDOW].iloc[0]
        as_in_paper = " (as in the paper)" if window == 3 else ""
        smoothing_note = f"Smoothed line: mean of {window} neighbouring points{as_in_paper}; markers: as measured."
    if (point_count := longest(plot)) is not None:
        downsampling_note = (
            f"A curve has up to {point_count:,} points; the first, last, lowest and highest of each hundredth of the "
            "axis are drawn. The CSV has all."
        )
    drawing = sentences(smoothing_note, downsampling_note)
    run_notes = (
        describe_measures(runs, metric),
        describe_networks(runs, METRIC_NEEDS.get(metric.split(":")[0])),
        describe_readings(runs, metric),
        describe_datasets(runs, metric),
    )
    caption = replace(caption, details=sentences(caption.details, drawing, *run_notes))
    notes = {run.name: note for run in runs if (note := data_note(run, equivalent_metric(run, metric)))}
    names = tuple(run.name for run in runs)
    return Figure(name, title, plot, table, caption, names, notes, drawing=drawing, **fields)


def data_note(run: Run, metric: str, default: str = "") -> str:
    """Return a short description of the data behind a metric's results; `default` if none is recorded."""
    try:
        return results.read_sources(run).get(metric, {}).get("note", default) if metric else default
    except EmbryoError:
        return default


def describe_readings(runs: Sequence[Run], metric: str) -> str:
    """Return a note on the runs that read sentences as running text, if other runs read single words; else ""."""
    as_written = [run.name for run in runs if READ_AS_TEXT in data_note(run, equivalent_metric(run, metric))]
    if len(as_written) in (0, len(runs)):
        return ""
    return (
        f"{_name_runs(as_written)} read sentences as running text, the others each word on its own: results of the "
        "two are not comparable."
    )


def describe_datasets(runs: Sequence[Run], metric: str) -> str:
    """Return a note on the data of each run, if they differ in more than how sentences are read; else ""."""
    try:
        records = [results.data_options(run, equivalent_metric(run, metric)) for run in runs]
    except EmbryoError:
        return ""
    known = [{**record, AS_WRITTEN.name: None} for record in records if record]
    if all(record == known[0] for record in known):
        return ""
    by_note: dict[str, list[str]] = {}
    for run in runs:
        by_note.setdefault(data_note(run, equivalent_metric(run, metric), "unknown data"), []).append(run.name)
    listing = "; ".join(f"{_name_runs(names)}: {note}" for note, names in by_note.items())
    return f"Evaluated on different data or with different options, so results are not comparable. {listing}."


def name_measures(runs: Sequence[Run], metric: str) -> str:
    """Return a metric's name for a heading; "prediction" if some runs predict masked words and some next words."""
    is_mixed = len({equivalent_metric(run, metric) for run in runs}) > 1
    return "prediction" if is_mixed else equivalent_metric(runs[0], metric).replace("_", " ")


def describe_measures(runs: Sequence[Run], metric: str) -> str:
    """Return a note on the measure of each run, if they differ; else ""."""
    by_measure: dict[str, list[str]] = {}
    for run in runs:
        by_measure.setdefault(equivalent_metric(run, metric), []).append(run.name)
    if len(by_measure) < 2:
        return ""
    listing = "; ".join(f"{_name_runs(names)} by {measure.replace('_', ' ')}" for measure, names in by_measure.items())
    return (
        f"{listing}: prediction of masked words reads the words on both sides, that of next words those before, so "
        "their accuracies are not comparable."
    )


def describe_networks(runs: Sequence[Run], needs: frozenset[str] | None) -> str:
    """Return a note on the network of an ELECTRA model that a figure is about (see `Metric.needs`); else ""."""
    electra_runs = [run.name for run in runs if run.family in ENCODERS and ENCODERS[run.family].replaced_token_heads]
    if not electra_runs or not needs or "replaced_tokens" in needs:
        return ""
    generator = "the generator, which predicts masked words"
    network = generator if needs & {"masked_words", "words"} else "the discriminator, which detects replaced tokens"
    return f"ELECTRA ({', '.join(electra_runs)}): {network}."


def describe_lines(*parts: str) -> str:
    """Return the sentence of a caption on lines as measured; the non-empty `parts` say what else is drawn."""
    return f"Line: {'; '.join(['as measured', *filter(None, parts)])}."


def describe_seeds(counts: Sequence[int], mean: str = "") -> str:
    """Return the part of a caption on the seeds of designs with `counts` seeds; "" for a single run.

    `mean` says how the seeds of a design are drawn together, if they are.
    """
    single = "A design with a single seed does not show the variation between seeds."
    return sentences(
        f"Several seeds of a design: {mean}." if mean and max(counts) > 1 else "",
        single if 1 in counts and len(counts) > 1 else "",
    )


def sentences(*parts: str) -> str:
    """Join the non-empty parts into one text."""
    return " ".join(part for part in parts if part)
