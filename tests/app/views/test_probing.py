"""The Probing page in Streamlit's own test runner: its choices, its captions, and results that are there in part."""

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import results
from embryo_core.types import Findings, Run, Score
from tests.app.conftest import captions_of, unescaped
from tests.conftest import at
from tests.probed import NOTE, STEPS, write_probes


@pytest.fixture
def probed(dashboard_without_results, own_run: Run):
    """Return the dashboard on a run that was probed on two tasks of the metric and on one of the user's own."""
    write_probes(own_run)
    return dashboard_without_results


def open_page(dashboard, **query: str) -> AppTest:
    """Open the page with the training of a probe, at the last step unless the query names another."""
    page = dashboard.open("probing", open="probe", **query)
    assert not page.exception and not page.error
    return page


def box(page: AppTest, label: str):
    """Return a select box by its label."""
    return next(found for found in page.selectbox if found.label == label)


def captions(page: AppTest) -> str:
    """Return all captions as one text."""
    return "\n".join(caption for caption in captions_of(page))


def everything(dashboard, **query: str) -> tuple[str, list[str]]:
    """Return captions and headings of all sections."""
    pages = [open_page(dashboard, probing=section, **query) for section in ("tasks", "layers", "order")]
    return "\n".join(map(captions, pages)), [heading for page in pages for heading in headings(page)]


def headings(page: AppTest) -> list[str]:
    """Return the titles of all sections, also of those that fold."""
    return [unescaped(title) for title in (*(one.value for one in page.header), *(one.label for one in page.expander))]


# === What it says ===


def test_captions_name_the_data_and_n(probed) -> None:
    """Targets of the test sets, sizes of the splits, the held-out pieces, and the notes of all evaluations."""
    text, _ = everything(probed)
    assert f"Data: {NOTE}; {NOTE}; n = 50 to 400 targets." in text
    assert "share of 200 masked pieces of held-out text" in text
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
def test_captions_say_which_layer(probed, chosen: str, said: str, trained: str) -> None:
    """All figures that show one layer show the chosen one."""
    text, headed = everything(probed, probe_layer=chosen)
    assert f"frozen hidden states of one layer: {said}." in text
    assert f"at each checkpoint (3), in {said}." in text
    assert f"thick: {trained}." in text
    assert f"Training of a probe: parts of speech, {trained}, step 16" in headed


def test_the_table_of_peaks_has_every_task_and_layer(probed) -> None:
    """F1 at the peak and at the end as means of three steps, the decay in points."""
    table = open_page(probed, probing="order").dataframe[0].value
    assert list(table["task"]) == ["parts of speech"] * 3 + ["semantic roles"] * 3 + ["mine"] * 3
    assert list(table["layer"][:3]) == ["embeddings", "layer 1", "layer 2"]
    row = table.iloc[1]  # 0.50, 0.80, 0.75
    assert (row["step"], row["f1"], row["last"], row["decay"], row["n"]) == pytest.approx((8, 0.8, 0.75, 5, 400))


# === What is chosen ===


@pytest.mark.parametrize(
    "wanted",
    [
        {"probing": "tasks", "unit": "rescaled", "bands": "off"},
        {"probing": "layers", "probe_task": "mine", "score": "selectivity", "bands": "off"},
        {"probing": "order", "x_task": "srl", "y_task": "mine"},
    ],
    ids=lambda wanted: wanted["probing"],
)
def test_a_link_restores_the_view(probed, wanted: dict[str, str]) -> None:
    """Every choice of a section comes back from the URL, and stays in it."""
    wanted = {"step": "8", "scale": "linear", "probe_layer": "2"} | wanted
    page = open_page(probed, **wanted)
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
def test_nonsense_in_a_link_shows_the_default(probed, query: dict[str, str]) -> None:
    """The page opens as without it."""
    assert box(open_page(probed, probing="-", **query), "Layer").value == "best"
    assert box(open_page(probed, probing="layers", **query), "Task").value == "pos"
    page = open_page(probed, probing="order", **query)
    assert (box(page, "Horizontal axis").value, box(page, "Vertical axis").value) == ("pos", "srl")


def test_no_task_is_set_against_itself(probed) -> None:
    """Choosing for the one side what the other shows gives the other another."""
    page = open_page(probed, probing="order", x_task="srl", y_task="pos")
    box(page, "Horizontal axis").select("pos").run()
    assert not page.exception
    assert "pos" not in box(page, "Vertical axis").options and box(page, "Vertical axis").value == "srl"


# === What is there in part ===


def test_without_results_the_page_says_what_to_run(dashboard_without_results) -> None:
    """One sentence and one command."""
    page = open_page(dashboard_without_results)
    assert "have not been probed yet" in page.info[0].value
    assert page.code[0].value == "python -m embryo_core evaluate tiny --metrics edge_probing --probing PATH"


@pytest.mark.parametrize("compacted", [False, True], ids=["going on", "compacted"])
def test_steps_not_yet_evaluated_are_no_obstacle(dashboard_without_results, own_run: Run, compacted: bool) -> None:
    """One checkpoint of three: the last evaluated one is shown for a later choice, the first for an earlier."""
    write_probes(own_run, steps=STEPS[1:2])
    if compacted:
        results.compact(own_run)
    for step in ("0", "8", "16"):
        page = open_page(dashboard_without_results, probing="layers", step=step)
        assert "a column for each evaluated checkpoint (1)" in captions(page)
        assert "Training of a probe: parts of speech, layer 2, step 8" in headings(page)


def test_a_task_that_lags_behind_is_shown_as_far_as_it_is(dashboard_without_results, own_run: Run) -> None:
    """One's own task at one step, the paper's at all: each figure takes the steps that there are."""
    write_probes(own_run, tasks=("pos",))
    write_probes(own_run, tasks=("mine",), steps=(8,))
    text, headed = everything(dashboard_without_results, probe_task="mine", step="16")
    assert "Training of a probe: mine, layer 2, step 8" in headed
    assert "F1 of both tasks at each checkpoint (1)" in text


def test_tasks_without_a_common_step_are_not_compared(dashboard_without_results, own_run: Run) -> None:
    """One sentence instead of the figure."""
    write_probes(own_run, tasks=("pos",), steps=(0,))
    write_probes(own_run, tasks=("mine",), steps=(8,))
    page = open_page(dashboard_without_results, probing="order")
    assert any("no step at which both tasks" in caption.value for caption in page.caption)


def test_a_single_task_of_ones_own_is_a_page(dashboard_without_results, own_run: Run) -> None:
    """Nothing of the paper's tasks is needed; there is no second task to compare with."""
    write_probes(own_run, tasks=("mine",))
    text, _ = everything(dashboard_without_results)
    assert box(open_page(dashboard_without_results, probing="layers"), "Task").options == ["mine"]
    assert "parts of speech" not in text and NOTE in text
    assert "400 targets for training, 60 for development, 50 for testing" in text
    page = open_page(dashboard_without_results, probing="order")
    assert any("a second one is needed" in info.value for info in page.info)


def test_scores_without_training_curves_and_controls_are_enough(dashboard_without_results, own_run: Run) -> None:
    """Selectivity cannot be chosen then, not even by a link."""
    scores = [Score("edge_probing_f1", 0.5, 40, "<i>own</i>", layer) for layer in range(3)]
    results.write(at(own_run, 8), "edge_probing", Findings(scores=scores))
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


def test_peaks_are_folded_where_none_has_surely_fallen(dashboard_without_results, own_run: Run) -> None:
    """With few targets every interval of a decay holds zero; the fold says what there is to see."""
    scores = [Score("edge_probing_f1", 0.5 + layer / 100, 40, "pos", layer) for layer in range(3)]
    results.write(at(own_run, 8), "edge_probing", Findings(scores=scores))
    (fold,) = open_page(dashboard_without_results, probing="order").expander
    assert fold.label == "Peak and decay: no layer has fallen significantly from its peak" and not fold.proto.expanded
