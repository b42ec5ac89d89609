"""Tests of the figures of findings: comparisons with interval, side and n, small pictures, and the headline."""

from dataclasses import replace
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest

from embryo_core.errors import FigureError
from embryo_core.figures import findings
from embryo_core.figures.axis import AxisChoice
from embryo_core.findings import FINDINGS, Comparison, Judgement, judge
from embryo_core.findings.evidence import Curve
from embryo_core.types import Run, StepUnit

COMPARISONS = (
    Comparison("noun before verb", 2.0, 1.0, 4.0, "checkpoints", 50),
    Comparison("<b>verb</b> before noun", -3.0, -5.0, -2.0, "checkpoints", 60),
    Comparison("layer 2 falls back", 0.01, -0.02, 0.04, "accuracy", 70),
)
JUDGEMENT = Judgement(FINDINGS[0], "partly", COMPARISONS, "")


def test_comparisons_are_drawn_with_their_intervals():
    """Points, ends and n are those of the table on either side; each unit has its own panel."""
    table = findings.comparison_table(JUDGEMENT)
    assert table["side"].tolist() == ["holds", "opposed", "not decided"]
    figure = findings.plot_comparisons(table)
    drawn = sorted(
        (x, x - below, x + above, n, trace.xaxis)
        for trace in figure.data
        for x, below, above, (_, _, n) in zip(trace.x, trace.error_x.arrayminus, trace.error_x.array, trace.customdata)
    )
    expected = sorted((c.value, c.low, c.high, c.n, "x2" if c.unit == "accuracy" else "x") for c in COMPARISONS)
    assert [row[-2:] for row in drawn] == [row[-2:] for row in expected]
    assert [row[:3] for row in drawn] == [pytest.approx(row[:3]) for row in expected]
    assert "accuracy" in figure.layout.xaxis2.title.text


def test_names_of_comparisons_are_escaped():
    """A name from elsewhere is shown as text; categories run from the bottom, in reverse order of the table."""
    figure = findings.plot_comparisons(findings.comparison_table(JUDGEMENT))
    assert figure.layout.yaxis.categoryarray == ("&lt;b&gt;verb&lt;/b&gt; before noun", "noun before verb")


def test_finding_table_has_a_row_per_finding():
    """Bars are 1, 0 and -1; a finding that cannot be judged has none."""
    table = findings.finding_table([JUDGEMENT, Judgement(FINDINGS[1], "undecided", (), "run this")])
    assert table["comparisons"].tolist() == [[1, 0, -1], []]
    assert table["hold"].fillna("").tolist() == ["1 of 3", ""]


def drawn(address: str) -> list[list[tuple[float, float]]]:
    """Return the points of each line of a picture; check that it is one SVG."""
    root = ElementTree.fromstring(unquote(address.removeprefix("data:image/svg+xml,")))
    return [
        [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        for line in root.iter("{http://www.w3.org/2000/svg}polyline")
    ]


def test_picture_draws_the_curves_behind_a_verdict():
    """Curves share one scale, with higher values further up and later steps further right, inside the picture."""
    steps = np.array([0, 1, 100])
    rising, flat = (Curve(steps, np.array(values), np.ones(3)) for values in ((0.0, 0.2, 0.8), (0.4, 0.4, 0.4)))
    first, second = drawn(findings.picture(replace(JUDGEMENT, curves=(rising, flat))))
    assert [y for _, y in first] == sorted((y for _, y in first), reverse=True)
    assert [x for x, _ in first] == sorted(x for x, _ in first) == [x for x, _ in second]
    assert {y for _, y in second} == {16.0}  # halfway up
    width, height = findings.PICTURE_SIZE
    assert all(0 <= x <= width and 0 <= y <= height for x, y in [*first, *second])


def test_picture_of_a_verdict_without_curves_has_bars():
    """A bar points up if its comparison is on the paper's side; a finding that cannot be judged has no picture."""
    up, down, _ = drawn(findings.picture(JUDGEMENT))
    assert up[1][1] < up[0][1] == down[0][1] < down[1][1]
    assert findings.picture(Judgement(FINDINGS[1], "undecided", (), "run this")) is None


def test_headline_counts_findings_that_can_be_judged():
    """Findings that cannot be judged are counted apart; without any others there is no headline."""
    verdicts = ["reproduced"] * 3 + ["partly"] * 2 + ["contradicted", "not", "undecided"]
    judgements = [Judgement(FINDINGS[0], verdict, (), "") for verdict in verdicts]
    words = findings.headline(judgements, 16, 16, StepUnit.UPDATES)
    assert "3 of 7 findings" in words and "2 in part, 1 not, 1 contradicted; 1 more" in words
    assert findings.headline(judgements[-1:], 16, 16, StepUnit.UPDATES) == ""
    assert "up to step 1,600 of 40,000" in findings.headline(judgements, 1600, 40_000, StepUnit.UPDATES)


def test_figure_of_a_finding_has_its_comparisons(tiny_results: Run):
    """The caption gives the prediction; a finding without comparisons is an error."""
    for judgement in judge(tiny_results):
        if not judgement.comparisons:
            with pytest.raises(FigureError, match="undecided"):
                findings.comparisons([tiny_results], AxisChoice(), judgement.finding.name)
            continue
        figure = findings.comparisons([tiny_results], AxisChoice(), judgement.finding.name)
        assert figure.table["value"].tolist() == [comparison.value for comparison in judgement.comparisons]
        assert judgement.finding.predicts in figure.caption.summary and figure.runs == (tiny_results.name,)
