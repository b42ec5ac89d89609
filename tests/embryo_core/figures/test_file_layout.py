"""Tests of the layout of figures for paper: light ground, generic font, title, legends, and small print."""

import json

import pandas as pd
import pytest

from embryo_core.figures import file_layout, findings
from embryo_core.figures.axis import STEP_LINE, StepAxis
from embryo_core.figures.curve_plot import plot_curves
from embryo_core.figures.lines import Curves, Line
from embryo_core.types import Change, StepUnit

AXIS = StepAxis("log", step_unit=StepUnit.UPDATES)
CURVES = Curves(by="split", value="accuracy", y_title="accuracy")
LOG = pd.DataFrame([("heldout", 0, 0.0, 200), ("heldout", 8, 0.15, 200)], columns=["split", "step", "accuracy", "n"])


@pytest.fixture
def figure():
    """Return a figure as a page shows it, with its step line."""
    return plot_curves([Line("demo", AXIS, CURVES.rows(LOG), LOG)], CURVES)


@pytest.mark.parametrize("columns", file_layout.SIZES)
def test_files_are_light_and_name_their_run(figure, columns) -> None:
    """A file has a white ground, a font that every system has, and no step line; the page's figure does not change."""
    before = figure.to_json()
    paper = file_layout.lay_out_file(figure, columns, "Accuracy <b>", "Run 'demo'; 512 sequences.")
    layout = json.loads(json.dumps(paper.layout))
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "white"
    assert layout["font"]["family"].startswith("Arial, Helvetica") and "sans-serif" in layout["font"]["family"]
    assert layout["title"]["text"] == "Accuracy &lt;b&gt;"
    assert "Run 'demo'; 512 sequences." in layout["annotations"][-1]["text"].replace("<br>", " ")
    assert STEP_LINE not in [shape.get("name") for shape in layout.get("shapes", [])]
    assert layout["width"] == file_layout.SIZES[columns].pixels
    assert figure.to_json() == before


def test_legends_have_room_for_any_font(figure) -> None:
    """Entries are as wide as the longest name in wide letters, so that a narrower file has more rows of them."""
    figure.data[0].name = "majority baseline of the task"
    figure.add_scatter(x=[0], y=[0], name="second")
    one, two = (file_layout.lay_out_file(figure, columns, "", "").layout for columns in ("one", "two"))
    assert one["legend"]["entrywidth"] >= 0.6 * 14 * len("majority baseline of the task")
    assert one["margin"]["t"] > two["margin"]["t"]


def test_long_row_names_are_wrapped() -> None:
    """Rows grow with the number of lines; the small print and the axis title wrap at the width of the plot."""
    names = ["part of speech with semantic roles", "constituents with coreference"]
    rows = pd.DataFrame({"comparison": names, "value": 1.0, "low": 0.5, "high": 1.5, "n": 9, "side": "holds"})
    figure = findings.plot_comparisons(rows.assign(unit="doublings of the step"))
    one, two = (file_layout.lay_out_file(figure, columns, "Title", "word " * 40).layout for columns in ("one", "two"))
    assert list(one["yaxis"]["tickvals"]) == names
    assert [text.replace("<br>", " ") for text in one["yaxis"]["ticktext"]] == names
    widest = {"one": 14, "two": 32}  # in letters, of the names beside the plot
    for columns, file in (("one", one), ("two", two)):
        lines = [line for text in file["yaxis"]["ticktext"] for line in text.split("<br>")]
        assert max(map(len, lines)) <= widest[columns]
    assert "<br>" in one["xaxis"]["title"]["text"] and "<br>" not in two["xaxis"]["title"]["text"]
    assert one["annotations"][-1]["yshift"] < two["annotations"][-1]["yshift"]
    curves = plot_curves([Line("demo", AXIS, CURVES.rows(LOG), LOG)], CURVES)
    short = file_layout.lay_out_file(curves, "one", "", "").layout
    assert one["height"] - one["margin"]["t"] - one["margin"]["b"] >= 3 * 3 * 14 and "ticktext" not in short["yaxis"]


def test_marks_of_changes_have_their_own_legend(figure) -> None:
    """Their long names are in a second legend below the first, whose columns keep their width."""
    for name in ("second", "third", "fourth"):
        figure.add_scatter(x=[0], y=[0], name=name)
    bare = file_layout.lay_out_file(figure, "one", "", "")
    StepAxis("log", (Change(4, "sequences of 128 tokens"),), step_unit=StepUnit.UPDATES).mark_changes(figure, [0, 8])
    paper, long = file_layout.lay_out_file(figure, "one", "", ""), "from step 4: sequences of 128 tokens"
    one = paper.layout
    assert [(shape["name"], shape["legend"]) for shape in one["shapes"]] == [(long, "legend2")]
    assert paper.long == [long] and bare.long == []
    assert one["legend2"]["entrywidth"] >= 0.6 * 14 * len(long)
    assert (
        one["legend"]["entrywidth"] == bare.layout["legend"]["entrywidth"] and one["legend2"]["y"] < one["legend"]["y"]
    )
    assert one["margin"]["t"] == bare.layout["margin"]["t"] + file_layout.LEGEND_ROW


def test_long_names_of_curves_are_in_the_second_legend(figure) -> None:
    """The file shows the curve's entry there; the page's figure has one legend."""
    for name in ("second", "third", "fourth", "a curve with a very long name"):
        figure.add_scatter(x=[0], y=[0], name=name)
    drawn = file_layout.lay_out_file(figure, "one", "", "").draw(figure)
    assert [trace.name for trace in drawn.data if trace.legend == "legend2"] == ["a curve with a very long name"]
    assert drawn.layout.legend2.entrywidth and {trace.legend for trace in figure.data} == {None}
