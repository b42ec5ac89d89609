"""Tests of Figure: its CSV, citation and small print, its files, and what a notebook displays."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.errors import FigureError
from embryo_core.figures import figure as figures
from embryo_core.figures.figure import Caption, Figure, make_figure
from embryo_core.types import Run

GENERATOR = "generator"
DISCRIMINATOR = "discriminator"


@pytest.fixture
def figure() -> Figure:
    """Return a figure of one run with a curve of three points."""
    table = pd.DataFrame({"step": [0, 8, 16], "accuracy": [0.5, 1.0, 0.25], "n": [1213, np.nan, 7]})
    plot = go.Figure(go.Scatter(x=table["step"], y=table["accuracy"], name="noun"))
    caption = Caption("Accuracy of nouns.", "Band: 95 % interval.", "n = 7 to 1,213 words.", "Click a point.")
    return Figure("nouns", "Nouns", plot, table, caption, ("one",), {"one": "EWT, 2,077 sentences"}, suffix="step-16")


def test_csv_rows_name_run_and_data_and_have_integer_counts(figure: Figure) -> None:
    """An unknown count is an empty field."""
    rows = figure.to_csv().splitlines()
    assert rows[0] == "step,accuracy,n,run,data"
    data = 'one,"EWT, 2,077 sentences"'
    assert rows[1:] == [f"0,0.5,1213,{data}", f"8,1.0,,{data}", f"16,0.25,7,{data}"]


def test_csv_keeps_counts_that_are_means(figure: Figure) -> None:
    """The mean of a count over seeds, such as 2.5, is no integer."""
    csv = replace(figure, table=figure.table.assign(n=[2.5, 3.0, 4.0], n_words=2.0)).to_csv()
    assert "0,0.5,2.5,2," in csv


def test_csv_rows_of_several_runs_name_their_own_data(figure: Figure) -> None:
    """A row may name other data than its run's; seeds and layers are integers too."""
    table = pd.DataFrame({"run": ["one", "two", "two"], "seeds": [3, 1, np.nan], "layer": [np.nan, 2, 0]})
    several = replace(figure, table=table, runs=("one", "two"), data={"one": "EWT", "two": "GUM"})
    assert several.to_csv().splitlines() == ["run,seeds,layer,data", "one,3,,EWT", "two,1,2,GUM", "two,,0,GUM"]
    named = replace(several, table=table.assign(data=[np.nan, np.nan, "held-out text"]))
    assert [row.split(",")[-1] for row in named.to_csv().splitlines()] == ["data", "EWT", "GUM", "held-out text"]
    without = replace(several, data={}).to_csv().splitlines()
    assert without[0] == "run,seeds,layer"


def test_small_print_and_citation_name_runs_data_and_paper(figure: Figure) -> None:
    """The citation has BibTeX and the caption without its hint; the small print omits data that runs do not share."""
    assert figure.file_name == "nouns-step-16"
    assert figure.small_print == f"Run one; EWT, 2,077 sentences. {figures.CREDIT}"
    assert figure.citation.startswith("Nouns. Run one. Accuracy of nouns. Band: 95 % interval. n = 7 to 1,213 words.\n")
    assert "@inproceedings{chiang-etal-2020" in figure.citation and "Click" not in figure.citation
    both = replace(figure, runs=("one", "two"), data={"one": "EWT", "two": "GUM"}, drawing="Smoothed.")
    assert both.small_print == f"Runs one, two. Smoothed. {figures.CREDIT}"


def test_figure_is_saved_as_csv_and_html(figure: Figure, tmp_path: Path) -> None:
    """The HTML page is interactive and has the title; saving does not change the figure."""
    before = figure.plot.to_json()
    csv, page = figure.save(tmp_path / "nouns.csv"), figure.save(str(tmp_path / "nouns.html"))
    assert csv.read_text(encoding="utf-8") == figure.to_csv()
    text = page.read_text(encoding="utf-8")
    assert "Plotly.newPlot" in text and "Nouns" in text
    assert figure.plot.to_json() == before


def test_unknown_suffix_is_an_error(figure: Figure, tmp_path: Path) -> None:
    """The error names the file and the supported suffixes, and nothing is written."""
    with pytest.raises(FigureError, match=r"nouns\.docx.*\.svg, \.png, \.html or \.csv"):
        figure.save(tmp_path / "nouns.docx")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<svg"), (".png", b"\x89PNG")])
def test_svg_and_png_are_drawn_by_kaleido(figure: Figure, tmp_path: Path, suffix: str, begins: bytes) -> None:
    """Kaleido needs an installed browser, without which this test is skipped."""
    pytest.importorskip("kaleido", reason="kaleido draws SVG and PNG and is not installed")
    try:
        path = figure.save(tmp_path / f"nouns{suffix}", columns="one")
    except FigureError as error:
        pytest.skip(f"kaleido found no browser: {error}")
    assert path.read_bytes().startswith(begins)


def test_missing_kaleido_error_says_what_to_install(figure: Figure, tmp_path: Path, monkeypatch) -> None:
    """The error names the file, which is not written."""

    def fail(*args: object, **options: object) -> None:
        raise ImportError("kaleido")

    monkeypatch.setattr(go.Figure, "write_image", fail)
    with pytest.raises(FigureError, match=r"nouns\.svg.*pip install kaleido"):
        figure.save(tmp_path / "nouns.svg")
    assert not [*tmp_path.iterdir()]


def test_notebook_displays_plot_and_caption(figure: Figure) -> None:
    """The bundle has Plotly's JSON, HTML, and title and caption as text, and needs no installed notebook."""
    bundle = figure._repr_mimebundle_()
    assert bundle["text/plain"] == f"Nouns\n\n{figure.caption}"
    assert bundle["application/vnd.plotly.v1+json"]["data"][0]["name"] == "noun"
    assert "noun" in bundle["text/html"]


def test_caption_has_a_summary_and_a_rest(figure: Figure) -> None:
    """The hint is part of the rest, but not of the printed caption."""
    assert figure.caption.rest == "Band: 95 % interval. n = 7 to 1,213 words. Click a point."
    assert str(figure.caption) == "Accuracy of nouns. Band: 95 % interval. n = 7 to 1,213 words."
    assert Caption("Alone.").rest == ""


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("mask_prediction", GENERATOR),
        ("world_knowledge", GENERATOR),
        ("ngram_divergence:own", GENERATOR),
        ("head_behaviour", DISCRIMINATOR),
        ("edge_probing:coref", DISCRIMINATOR),
        ("finetuning:cola:1", DISCRIMINATOR),
        ("replaced_token_accuracy", ""),
        ("", ""),
    ],
)
def test_captions_name_the_network_of_an_electra(tiny_run: Run, figure: Figure, metric: str, said: str) -> None:
    """The generator predicts masked words and the discriminator does all else; replaced tokens involve both."""
    electra, other = replace(tiny_run, name="own", family="electra"), replace(tiny_run, family="roberta")
    new_figure = make_figure([electra, other], "nouns", "Nouns", figure.plot, figure.table, figure.caption, metric)
    details = new_figure.caption.details
    assert [name for name in (GENERATOR, DISCRIMINATOR) if name in details] == [said] * bool(said)
    assert ("ELECTRA (own)" in details) == bool(said) and new_figure.runs == ("own", tiny_run.name)
    alone = make_figure([other], "nouns", "Nouns", figure.plot, figure.table, figure.caption, metric)
    assert alone.caption.details == figure.caption.details
