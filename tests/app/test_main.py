"""Tests of the whole dashboard, page by page, without a browser: with results, without, and with broken ones."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import views
from embryo_core import runs
from embryo_core.figures.markdown import literal
from embryo_core.metrics import METRICS
from embryo_core.types import Run

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"

PAGES = (
    "overview",
    "findings",
    "tokens",
    "attention",
    "probing",
    "knowledge",
    "finetuning",
    "query",
    "grammar",
    "words",
    "geometry",
)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_results(page: str, dashboard_with_results) -> None:
    """Without parameters the page opens the run of the data root at its last step."""
    app = dashboard_with_results.open(page)
    assert not app.exception
    assert not app.error
    assert app.title[0].value.lower().replace("-", "") == page
    assert app.query_params["run"] == "tiny"
    assert app.query_params["step"] == "16"


@pytest.mark.parametrize("page", PAGES)
def test_page_without_runs_shows_pretraining_command(page: str, dashboard) -> None:
    """The message names EMBRYO_DATA and every folder that was searched for runs."""
    app = dashboard.open(page)
    assert not app.exception
    assert "no run" in app.info[0].value and literal("EMBRYO_DATA") in app.info[0].value
    assert all(literal(str(root / "runs")) in app.info[0].value for root in runs.roots())
    assert "python -m pretrain" in app.code[0].value


@pytest.mark.parametrize("card", ["5", "null", '{"name": "![x](https://example.org/x)"}'])
def test_link_to_broken_run_names_fault(card: str, dashboard_without_results, own_run: Run) -> None:
    """The picker marks the run as broken, its name is not rendered as Markdown, and without a link another opens."""
    broken = own_run.path.with_name("![a](b)")
    broken.mkdir()
    (broken / "run.json").write_text(card)
    app = dashboard_without_results.open("overview")
    assert not app.exception and app.query_params["run"] == "tiny"
    app = dashboard_without_results.open("overview", run=broken.name)
    assert not app.exception
    assert "is not valid" in app.info[0].value.replace("\\", "") and "![a]" not in app.info[0].value
    assert f"{broken.name} (broken)" in app.selectbox[0].options


@pytest.mark.parametrize(
    ("page", "message", "options"),
    [
        ("tokens", "has not been computed", "--metrics mask_prediction --treebank PATH"),
        ("words", "has no surprisals of words yet", "--metrics word_surprisal --words PATH --text PATH"),
        ("grammar", "has not been evaluated on minimal pairs yet", "--metrics minimal_pairs --pairs PATH"),
        ("geometry", "has not been measured yet", "--metrics geometry --treebank PATH"),
        ("attention", "has no attention maps yet", "--metrics attention --treebank PATH"),
        ("probing", "have not been probed yet", "--metrics edge_probing --probing PATH"),
        ("knowledge", "has not been asked any facts yet", "--metrics world_knowledge --lama PATH"),
    ],
)
def test_page_without_results_shows_evaluation_command(
    page: str, message: str, options: str, dashboard_without_results
) -> None:
    """A message says what is missing, and the command that computes it names the run."""
    app = dashboard_without_results.open(page)
    assert not app.exception and not app.error
    assert message in app.info[0].value
    assert app.code[0].value == f"python -m embryo_core evaluate tiny {options}"


@pytest.mark.parametrize(
    ("page", "table"), [("tokens", "scores"), ("tokens", "words"), ("knowledge", "scores"), ("attention", "attention")]
)
def test_broken_results_file_is_named_in_message(
    page: str, table: str, dashboard_with_results, tiny_results: Run, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are not Parquet lead to an error message instead of a traceback."""
    own_run.results.mkdir(parents=True)
    for path in tiny_results.results.glob("*.parquet*"):
        (own_run.results / path.name).write_bytes(path.read_bytes())
    (own_run.results / f"{table}.parquet").write_bytes(b"this is no parquet file")
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    app = dashboard_with_results.open(page)
    assert not app.exception
    assert rf"{table}\.parquet" in app.error[0].value


def test_run_with_only_broken_checkpoints_names_fault(dashboard_without_results, own_run: Run) -> None:
    """There is no step to show, so the page shows what is wrong with a manifest."""
    for manifest in own_run.path.glob("checkpoints/*/manifest.json"):
        manifest.write_text("{}")
    app = dashboard_without_results.open("overview")
    assert not app.exception
    assert "is not valid" in app.info[0].value and "missing required field" in app.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_run_without_checkpoints_gets_message(page: str, dashboard_without_results, own_run: Run) -> None:
    """This is the state of a run before its pretraining has written the first checkpoint."""
    shutil.rmtree(own_run.path / "checkpoints")
    app = dashboard_without_results.open(page)
    assert not app.exception
    assert "no checkpoint yet" in app.info[0].value


def test_missing_step_falls_back_to_last_earlier_one(dashboard_with_results) -> None:
    """A step that is not a number falls back to the last one; a message says so, and the URL is unchanged."""
    for requested, shown in (("15", "8"), ("1500", "16"), ("-x", "16"), ("1" * 5000, "16")):
        app = dashboard_with_results.open("overview", step=requested)
        named = {"1500": "1,500"}.get(requested, requested[:20])
        message = f"Run 'tiny' has no checkpoint at step {named}; showing step {shown}."
        assert app.info[0].value.replace("\\", "") == message and app.query_params["step"] == requested


@pytest.mark.parametrize(
    ("page", "name", "message"),
    [
        ("attention", "layer", "The link has the layer 'zzz', which is not here; showing '"),
        ("tokens", "metric", "The link has the metric 'zzz', which is not here; showing '"),
        ("tokens", "parts_of_speech", "The link has the parts of speech 'zzz', which is not here."),
        ("overview", "axis", "The link has the axis 'zzz', which is not here; showing 'step'."),
        ("overview", "scale", "The link has the scale 'zzz', which is not here; showing 'log'."),
        ("probing", "smooth", "The link has the smooth 'zzz', which is not here; showing 'off'."),
        ("probing", "bands", "The link has the bands 'zzz', which is not here; showing 'on'."),
        ("query", "template", "The link has the template 'zzz', which is not here."),
        ("query", "subject", "The link has the subject 'zzz', which is not here."),
        ("query", "pin", "The link has the pin 'zzz', which is not here; showing 'Layer 2 at step 16'."),
    ],
)
def test_unknown_value_in_link_is_reported_on_its_page_only(dashboard_with_results, page, name, message) -> None:
    """The value stays in the URL, and another page of the same session does not mention it."""
    app = dashboard_with_results.open(page, **{name: "zzz"})
    assert any(info.value.replace("\\", "").startswith(message) for info in app.info)
    assert app.query_params[name] == "zzz" and not app.exception
    elsewhere = dashboard_with_results.go(app, "attention" if page == "tokens" else "tokens")
    assert not any("The link has" in info.value for info in elsewhere.info)


KNOWN = [("axis", "tokens"), ("scale", "linear"), ("smooth", "3"), ("bands", "off")]


@pytest.mark.parametrize(("name", "value"), KNOWN)
def test_known_value_in_link_is_applied_silently(dashboard_with_results, name, value) -> None:
    """The value is also in the URL that the page writes."""
    app = dashboard_with_results.open("probing", **{name: value})
    assert not any("The link has" in info.value for info in app.info) and app.query_params[name] == value


def test_unknown_axis_is_reported_outside_closed_menu(dashboard_with_results) -> None:
    """The axis is picked in the Overlay menu, where a message would be hidden until a reader opens it."""
    app = dashboard_with_results.open("overview", axis="zzz")
    notes = [info for info in app.info if "The link has the axis" in info.value]
    within = [block for block in app.main if block.type == "popover"]
    assert len(notes) == 1 and not any(notes[0] in list(block.info) for block in within)


def test_unknown_scale_is_reported_until_another_is_chosen(dashboard_with_results) -> None:
    """A choice on the time bar replaces the value in the URL and removes the message."""
    app = dashboard_with_results.open("overview", scale="zzz")
    app.session_state["permalink"]["scale"] = "linear"  # as a choice on the time bar does
    app.run()
    assert app.query_params["scale"] == "linear" and not any("The link has" in info.value for info in app.info)


def test_query_page_reports_only_overlaid_runs_that_do_not_exist(dashboard_with_results) -> None:
    """The Query page is about one run; an existing run that other pages draw beside it is not reported."""
    app = dashboard_with_results.open("query", beside="tiny,gone")
    words = [info.value.replace("\\", "") for info in app.info]
    assert [word for word in words if "is not here" in word] == ["Run 'gone' is not here; showing 'tiny' without it."]


def test_unknown_run_in_link_is_reported_until_another_is_chosen(dashboard_with_results) -> None:
    """An existing run is shown meanwhile, and the URL keeps the unknown name."""
    app = dashboard_with_results.open("overview", run="zzz")
    assert app.info[0].value == literal("Run 'zzz' is not here; showing 'tiny'.") and app.query_params["run"] == "zzz"
    app.session_state["permalink"]["run"] = "tiny"  # as a choice in the box does
    app.run()
    assert app.query_params["run"] == "tiny" and not app.info


def test_chosen_step_is_kept_across_pages(dashboard_with_results) -> None:
    """The next page opens at the step of the one before, and its URL has it."""
    app = dashboard_with_results.open("overview", step="8")
    dashboard_with_results.go(app, "tokens")
    assert app.title[0].value == "Tokens"
    assert app.query_params["step"] == "8"


@pytest.mark.parametrize("page", PAGES)
def test_step_scale_is_logarithmic_by_default(page: str, dashboard_with_results) -> None:
    """A linear scale in the link is kept by the other pages of the session."""
    assert dashboard_with_results.open(page).query_params["scale"] == "log"
    app = dashboard_with_results.open(page, scale="linear")
    dashboard_with_results.go(app, "overview" if page == "tokens" else "tokens")
    assert app.query_params["scale"] == "linear"


def test_opening_pages_imports_no_model_library() -> None:
    """main.py and all pages are imported in a new process: libraries that take as long as a page are not loaded."""
    heavy = ["torch", "transformers", "tensorflow", "keras", "sklearn", "scipy", "datasets"]
    pages = [f"app.views.{page.replace('-', '')}" for page in PAGES]
    code = f"import sys, app.main, {', '.join(pages)}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_new_page_needs_one_file_and_one_line(
    dashboard_with_results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in app/views and a line in PAGES give a page with its own URL and the step of the time bar."""
    (tmp_path / "toy.py").write_text(
        "import streamlit as st\nfrom app import widgets\n\n"
        "def show():\n    view = widgets.begin_page('Toy')\n    st.write(f'at {view.step}')\n"
    )
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "app.views.toy", raising=False)
    main = MAIN.read_text(encoding="utf-8").replace("PAGES = [\n", 'PAGES = [\n    page("toy"),\n')
    (tmp_path / "main.py").write_text(main, encoding="utf-8")
    (tmp_path / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    app = dashboard_with_results.open("toy", main=tmp_path / "main.py", step="8")
    assert not app.exception and app.title[0].value == "Toy" and app.markdown[-1].value == "at 8"


def test_every_metric_names_existing_page() -> None:
    assert {metric.page for metric in METRICS} <= set(PAGES)


# === Steps that count words ===

IN_WORDS = [
    ("overview", {}),
    ("findings", {}),
    ("tokens", {}),
    ("attention", {"section": "maps"}),
    ("attention", {"section": "layers"}),
    ("attention", {"section": "heads"}),
    ("attention", {"section": "sentence"}),
    ("probing", {"probing": "tasks"}),
    ("probing", {"probing": "layers"}),
    ("probing", {"probing": "order"}),
    ("knowledge", {}),
    ("finetuning", {}),
    ("query", {"text": "the cat [MASK] .", "word": "sat"}),
]
NUMBERED = re.compile(  # a step with its number, or the head of such numbers
    r"(?<!-)\bsteps? (?:%\{|\d)|\b(?:since|at|from|best|Last) step\b(?= ?[\"<\\])", re.ASCII
)


@pytest.fixture
def counted_in_words(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the data root to a copy of the tiny run with all its results whose steps count words."""
    shutil.copytree(tiny_results.path.parents[1], tmp_path / "data")
    card = tmp_path / "data" / "runs" / tiny_results.name / "run.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"counted_in": "words"}))
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))


def everything_in(block) -> Iterator[str]:
    """Return each element of a page as the text of the message that is sent to the browser."""
    yield str(getattr(block, "proto", ""))
    for child in getattr(block, "children", {}).values():
        yield from everything_in(child)


def test_message_about_missing_step_counts_words(dashboard, counted_in_words) -> None:
    """Both the requested step and the one that is shown are named in words."""
    message = "Run 'tiny' has no checkpoint at 15 words; showing 8 words."
    assert dashboard.open("overview", step="15").info[0].value.replace("\\", "") == message


@pytest.mark.parametrize(("page", "query"), IN_WORDS)
def test_pages_name_unit_that_steps_count(page, query, dashboard, counted_in_words) -> None:
    """No sentence, table head, hover text or time bar calls a number of words a step."""
    app = dashboard.open(page, **query)
    assert not app.exception
    sent = [*everything_in(app.main)]
    assert {text[hit.start() - 40 : hit.end() + 20] for text in sent for hit in NUMBERED.finditer(text)} == set()
    assert any("16 words" in text for text in sent) or page == "findings"
