"""Tests of the Probing page: its captions, its choices, and incomplete results."""

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import results
from embryo_core.measurements import Findings, Score
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped
from tests.app.views.conftest import box
from tests.conftest import checkpoint_at
from tests.probed import NOTE, STEPS, write_probes


@pytest.fixture
def probed_dashboard(dashboard_without_results, own_run: Run):
    """Return the dashboard on a run that was probed on two tasks of the metric and on one task of a user."""
    write_probes(own_run)
    return dashboard_without_results


def open_page(dashboard, **query: str) -> AppTest:
    """Return the page with the section on a probe's training open, at the last step unless `query` names another."""
    page = dashboard.open("probing", open="probe", **query)
    assert not page.exception and not page.error
    return page


def captions(page: AppTest) -> str:
    """Return all captions as one text."""
    return "\n".join(caption for caption in captions_of(page))


def everything(dashboard, **query: str) -> tuple[str, list[str]]:
    """Return captions and headings of all sections."""
    pages = [open_page(dashboard, probing=section, **query) for section in ("tasks", "layers", "order")]
    return "\n".join(map(captions, pages)), [heading for page in pages for heading in headings(page)]


def headings(page: AppTest) -> list[str]:
    """Return the titles of all sections, including folded ones."""
    return [
        unescaped(title)
        for title in (*(header.value for header in page.header), *(expander.label for expander in page.expander))
    ]


# === Captions ===


def test_captions_name_data_and_n(probed_dashboard) -> None:
    """The captions give the notes of all evaluations, the numbers of targets per split, and the held-out pieces."""
    text, _ = everything(probed_dashboard)
    assert f"Data: {NOTE}; {NOTE}; n = 50 to 400 targets." in text
    assert "200 masked pieces of held-out text" in text
    assert "30 on the task, 30 on the control task by the fast protocol" in text
    assert "3,200 targets for training, 60 for development, 400 for testing; 5 labels" in text


@pytest.mark.parametrize(
    ("chosen", "said", "trained"),
    [
        ("best", "the layer with the best F1 at each step", "layer 1"),
        ("last", "the last layer (2)", "layer 2"),
        ("0", "embeddings", "embeddings"),
        ("1", "layer 1", "layer 1"),
    ],
)
def test_captions_name_chosen_layer(probed_dashboard, chosen: str, said: str, trained: str) -> None:
    """All figures of a single layer show the chosen one."""
    text, headed = everything(probed_dashboard, probe_layer=chosen)
    assert f"frozen hidden states of one layer: {said}." in text
    assert f"at each checkpoint (3), in {said}." in text
    assert f"thick: {trained}." in text
    assert f"Training of a probe: parts of speech, {trained}, step 16" in headed


def test_table_of_peaks_has_every_task_and_layer(probed_dashboard) -> None:
    """A row has the step and F1 of the peak, the last F1, and the decay between them in points."""
    table = open_page(probed_dashboard, probing="order").dataframe[0].value
    assert list(table["task"]) == ["parts of speech"] * 3 + ["semantic roles"] * 3 + ["mine"] * 3
    assert list(table["layer"][:3]) == ["embeddings", "layer 1", "layer 2"]
    row = table.iloc[1]  # 0.50, 0.80, 0.75
    assert (row["step"], row["f1"], row["last"], row["decay"], row["n"]) == pytest.approx((8, 0.8, 0.75, 5, 400))


# === Choices ===


@pytest.mark.parametrize(
    "wanted",
    [
        {"probing": "tasks", "unit": "rescaled", "bands": "off"},
        {"probing": "layers", "probe_task": "mine", "score": "selectivity", "bands": "off"},
        {"probing": "order", "x_task": "srl", "y_task": "mine"},
    ],
    ids=lambda wanted: wanted["probing"],
)
def test_link_restores_view(probed_dashboard, wanted: dict[str, str]) -> None:
    """Every choice of a section is read from the URL and written to it again."""
    wanted = {"step": "8", "scale": "linear", "probe_layer": "2"} | wanted
    page = open_page(probed_dashboard, **wanted)
    assert {name: page.query_params[name] for name in wanted} == wanted
    said = {
        "tasks": "all divided by the curve's own last value",
        "layers": "F1 minus F1 on the control task",
        "order": "The path runs from dark to bright",
    }
    assert said[wanted["probing"]] in captions(page) and "95 % interval (Wilson)" not in captions(page)
    if wanted["probing"] == "layers":
        assert "Training of a probe: mine, layer 2, step 8" in headings(page)
    if wanted["probing"] == "order":
        assert box(page, "Vertical axis").options == ["parts of speech", "mine"]


@pytest.mark.parametrize(
    "query",
    [{"probe_layer": "77"}, {"probe_task": "<b>"}, {"score": "9"}, {"x_task": "", "y_task": "?"}, {"unit": "-"}],
)
def test_invalid_values_in_link_show_defaults(probed_dashboard, query: dict[str, str]) -> None:
    """The pickers have the values that they have without a link."""
    assert box(open_page(probed_dashboard, probing="-", **query), "Layer").value == "best"
    assert box(open_page(probed_dashboard, probing="layers", **query), "Task").value == "pos"
    page = open_page(probed_dashboard, probing="order", **query)
    assert (box(page, "Horizontal axis").value, box(page, "Vertical axis").value) == ("pos", "srl")


def test_task_is_not_compared_with_itself(probed_dashboard) -> None:
    """If a reader chooses the task of the other axis, the other axis changes."""
    page = open_page(probed_dashboard, probing="order", x_task="srl", y_task="pos")
    box(page, "Horizontal axis").select("pos").run()
    assert not page.exception
    assert "pos" not in box(page, "Vertical axis").options and box(page, "Vertical axis").value == "srl"


# === Incomplete results ===


@pytest.mark.parametrize("compacted", [False, True], ids=["going on", "compacted"])
def test_steps_without_results_show_evaluated_one(dashboard_without_results, own_run: Run, compacted: bool) -> None:
    """Only step 8 of three has results, and is shown for an earlier and for a later chosen step."""
    write_probes(own_run, steps=STEPS[1:2])
    if compacted:
        results.compact(own_run)
    for step in ("0", "8", "16"):
        page = open_page(dashboard_without_results, probing="layers", step=step)
        assert "a column for each evaluated checkpoint (1)" in captions(page)
        assert "Training of a probe: parts of speech, layer 2, step 8" in headings(page)


def test_task_with_fewer_steps_is_shown_at_its_steps(dashboard_without_results, own_run: Run) -> None:
    """A user's task has results at one step, the paper's task at all; a figure of both uses the common step."""
    write_probes(own_run, tasks=("pos",))
    write_probes(own_run, tasks=("mine",), steps=(8,))
    text, headed = everything(dashboard_without_results, probe_task="mine", step="16")
    assert "Training of a probe: mine, layer 2, step 8" in headed
    assert "F1 of both tasks at each checkpoint (1)" in text


def test_tasks_without_common_step_are_not_compared(dashboard_without_results, own_run: Run) -> None:
    """A caption takes the place of the figure."""
    write_probes(own_run, tasks=("pos",), steps=(0,))
    write_probes(own_run, tasks=("mine",), steps=(8,))
    page = open_page(dashboard_without_results, probing="order")
    assert any("no step at which both tasks" in caption.value for caption in page.caption)


def test_user_task_alone_is_enough(dashboard_without_results, own_run: Run) -> None:
    """The page works without the paper's tasks, and says that a comparison needs a second task."""
    write_probes(own_run, tasks=("mine",))
    text, _ = everything(dashboard_without_results)
    assert box(open_page(dashboard_without_results, probing="layers"), "Task").options == ["mine"]
    assert "parts of speech" not in text and NOTE in text
    assert "400 targets for training, 60 for development, 50 for testing" in text
    page = open_page(dashboard_without_results, probing="order")
    assert any("a second one is needed" in info.value for info in page.info)


def test_scores_without_training_curves_and_controls_are_enough(dashboard_without_results, own_run: Run) -> None:
    """Selectivity needs controls, so it cannot be chosen, and a link to it is reported."""
    scores = [Score("edge_probing_f1", 0.5, 40, "<i>own</i>", layer) for layer in range(3)]
    results.write(checkpoint_at(own_run, 8), "edge_probing", Findings(scores=scores))
    layers, order = (
        open_page(dashboard_without_results, probing=section, score="selectivity") for section in ("layers", "order")
    )
    note = "The link has the score 'selectivity', which is not here; showing '"
    assert layers.query_params["score"] == "selectivity" and layers.info[0].value.replace("\\", "").startswith(note)
    assert layers.session_state["pick_score"] == "f1"
    assert not any("<i>own</i>" in caption.value for page in (layers, order) for caption in page.caption)
    assert not layers.info[1:] and any("training curve" in caption.value for caption in layers.caption)
    assert [unescaped(info.value) for info in order.info] == [
        "No layer is above the majority baseline at any step.",
        "Only one task has been probed; a second one is needed.",
    ]


def test_peaks_are_folded_without_significant_decay(dashboard_without_results, own_run: Run) -> None:
    """With 40 targets the interval of every decay includes zero, which the label of the fold states."""
    scores = [Score("edge_probing_f1", 0.5 + layer / 100, 40, "pos", layer) for layer in range(3)]
    results.write(checkpoint_at(own_run, 8), "edge_probing", Findings(scores=scores))
    (fold,) = open_page(dashboard_without_results, probing="order").expander
    assert fold.label == "Peak and decay: no layer has fallen significantly from its peak" and not fold.proto.expanded
