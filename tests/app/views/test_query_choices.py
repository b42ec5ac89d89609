"""Tests of the Query page's lens, LAMA facts and comparisons, and of stale values from a browser."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from app.views import query_ask
from embryo_core import query, results
from embryo_core.figures.figure import Figure
from embryo_core.figures.markdown import literal
from embryo_core.types import Fact, Run
from tests.app.conftest import captions_of
from tests.app.views.conftest import TEXT, box, words

# === The lens ===


def test_pinned_cell_lists_its_best_words(ask, tiny_run: Run) -> None:
    """The URL names the pinned cell; without a pin, the last layer at the chosen step is listed."""
    layer_answers = query.ask_layers(tiny_run, TEXT, steps=[0])
    app = ask(pin="1-0")
    assert words(app.dataframe[-1].value) == [p.token for p in layer_answers.best(0, layer=1)]
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert words(app.dataframe[-1].value) == words(app.dataframe[0].value)
    assert "pin" not in app.query_params and app.query_params["open"] in ("lens", ["lens"])


def test_address_of_a_lens_frame_opens_its_section(ask, shown: list[Figure]) -> None:
    """Frames that were copied before the lens was folded do not name the open section."""
    app = ask(figure="tiny-query-lens")
    assert "tiny-query-lens" in [figure.name for figure in shown] and not app.info


def test_lens_is_computed_only_when_unfolded(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the lens is folded, a question costs no passes for its layers."""
    asked: list[str] = []
    ask_layers = query.ask_layers

    def counted(run: Run, text: str, *others: object) -> query.Answers:
        asked.append(text)
        return ask_layers(run, text, *others)

    monkeypatch.setattr(query, "ask_layers", counted)
    text = "the [MASK] is unfolded ."
    assert ask(text).metric and not asked
    ask(text, open="lens")
    assert asked == [text]


@pytest.mark.parametrize(("pin", "shown"), [("9-8", "Layer 2 at step 8"), ("1-9", "Layer 1 at step 8")])
def test_unknown_pinned_cell_in_link_is_reported_once(ask, pin: str, shown: str) -> None:
    """This holds for two compared texts too; the URL keeps the pin until the reader removes it."""
    app = ask(pin=pin, compare="text", text2="a [MASK] .")
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the pin '{pin}', which is not here; showing '{shown}'."]
    assert app.query_params["pin"] == pin
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert "pin" not in app.query_params and not app.info


def test_unknown_pinned_cell_is_reported_if_only_second_text_is_answered(ask) -> None:
    """The first text has no mask, so it has a warning in place of answers and a lens."""
    app = ask(pin="9-8", compare="text", text="no mask", text2="a [MASK] .")
    assert len(app.warning) == 1 and len(app.metric) == 3
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == ["The link has the pin '9-8', which is not here; showing 'Layer 2 at step 8'."]
    assert app.query_params["pin"] == "9-8"


def test_stale_step_from_browser_is_ignored(ask) -> None:
    """If a click interrupts the page while the time bar plays, the boxes below the lens still have the earlier step."""
    app = ask(step="8", open="lens")
    before = app._tree
    app.session_state["permalink"]["step"] = "16"
    app.run()
    app._tree = before
    box(app, "Step").set_value(8).run()
    assert not app.exception and "pin" not in app.query_params and box(app, "Step").value == 16
    key = box(app, "Step").key
    box(app, "Step").set_value(0).run()
    assert app.query_params["pin"] in ("2-0", ["2-0"])
    assert box(app, "Step").key == key  # the same box, which keeps the focus


def test_stale_text_from_browser_is_ignored(ask) -> None:
    """An example was chosen while the browser still had the earlier text; later text is asked in the same box."""
    app = ask()
    before, example = app._tree, query_ask.FILL.examples[1]
    app.session_state["permalink"]["text"] = example
    app.run()
    app._tree = before
    app.text_area[0].set_value(TEXT).run()
    assert app.text_area[0].value == example and not app.exception
    key = app.text_area[0].key
    app.text_area[0].set_value(TEXT).run()
    assert app.text_area[0].value == TEXT and app.text_area[0].key == key


def test_lens_asks_for_one_mask(ask) -> None:
    """With all masks together, a message takes the place of the lens."""
    app = ask("the [MASK] of [MASK]", open="lens")
    assert "Choose one mask" in app.info[0].value


# === Facts ===


def question(run: Run, relation: str, subject: str) -> str:
    """Return the text that asks for a fact's object."""
    template = results.read_sources(run)["world_knowledge"]["templates"][relation]
    return Fact("", relation, template, subject, "").question


@pytest.mark.usefixtures("all_opened")
def test_live_answer_to_fact_matches_stored_one(open_page, tiny_results: Run) -> None:
    """Choosing a relation and a subject fills the box with the fact's question; a caption names the object."""
    app = open_page("query", tiny_results)
    box(app, "LAMA relation").set_value("P36").run()
    cloze = results.read_cloze(tiny_results, "P36")
    fact = cloze.iloc[0]
    box(app, "Subject").set_value(fact["fact"]).run()
    assert not app.exception
    assert app.text_area[0].value == question(tiny_results, "P36", fact["subject"])
    table = next(frame.value for frame in app.dataframe if "p(answer)" in frame.value.columns)
    live, stored = (row.tolist() for row in table.iloc[:, 1:].to_numpy())
    assert live[0] == stored[0] and live[2] == stored[2]
    assert [live[1], live[3]] == pytest.approx([stored[1], stored[3]], rel=1e-4)
    assert any(fact["object"] in caption for caption in captions_of(app))


def test_another_text_deselects_fact(ask, tiny_results: Run) -> None:
    """When the text is no longer the fact's question, no subject is chosen, nor named in the URL."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    text = question(tiny_results, "P36", fact["subject"])
    app = ask(text, tiny_results, template="P36", subject=fact["fact"])
    assert box(app, "Subject").value == fact["fact"]
    app.text_area[0].set_value(TEXT).run()
    assert box(app, "Subject").value is None
    assert "subject" not in app.query_params


def test_fact_in_link_with_another_text_is_reported(ask, tiny_results: Run) -> None:
    """The text is asked and no fact is chosen; the URL keeps the fact until the reader enters another text."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    app = ask(run=tiny_results, template="P36", subject=fact["fact"])
    named = f"{fact['subject']} → {fact['object']}"
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the subject '{named}', which is not the fact that the text asks for."]
    assert box(app, "Subject").value is None and app.query_params["subject"] == fact["fact"] and app.metric
    app.text_area[0].set_value("a [MASK] .").run()
    assert not app.info and "subject" not in app.query_params


# === Comparisons ===


@pytest.fixture
def ask_two(dashboard, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a function that asks the tiny run and a copy of it, "other", which lacks the checkpoint `lacking`."""

    def open_link(lacking: int | None = None, **parameters: str) -> AppTest:
        monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
        other = own_run.path.rename(own_run.path.with_name("other"))
        if lacking is not None:
            (other / "checkpoints" / f"step{lacking}" / "manifest.json").unlink()
        return dashboard.open("query", text=TEXT, other="other", run="tiny", **parameters)

    return open_link


def test_two_runs_and_two_sentences_give_four_answers(ask_two) -> None:
    """Each run answers each sentence under a heading that names both."""
    app = ask_two(compare="both", text2="a [MASK] .", step="8")
    assert [header.value for header in app.header].count("At step 8") == 4 and len(app.metric) == 12
    asked = [f"{literal(run)}**: {literal(text)}" for text in (TEXT, "a [MASK] .") for run in ("tiny", "other")]
    written = [markdown.value for markdown in app.markdown]
    assert all(any(question in text for text in written) for question in asked)


def test_two_sentences_are_answered_at_same_step(ask, tiny_run: Run) -> None:
    """Both have their answers and their words; without a mask the second has a warning in place of them."""
    first, second = query.ask(tiny_run, TEXT), query.ask(tiny_run, "a [MASK] .")
    app = ask(compare="text", text2="a [MASK] .", step="8")
    assert [header.value for header in app.header].count("At step 8") == 2
    assert len(app.metric) == 6
    listed = [words(frame.value) for frame in app.dataframe if "token" in frame.value.columns]
    assert listed == [[answer.token for answer in answers.best(8)] for answers in (first, second)]
    app = ask(compare="text", text2="no mask", step="8")
    (warning,) = app.warning
    assert "The text has no [MASK]" in warning.value.replace("\\", "") and len(app.metric) == 3
    listed = [words(frame.value) for frame in app.dataframe if "token" in frame.value.columns]
    assert listed == [[answer.token for answer in first.best(8)]]


def test_second_run_is_asked_at_last_earlier_step(ask_two) -> None:
    """The second run has no checkpoint at step 16, so it answers at step 8."""
    app = ask_two(16, compare="run", step="16")
    assert [header.value for header in app.header if header.value.startswith("At")] == ["At step 16", "At step 8"]
    assert not app.error and len(app.metric) == 6 and not app.info


def test_second_run_without_earlier_step_is_asked_at_its_first(ask_two) -> None:
    """A message says that the second run has no weights up to the chosen step."""
    app = ask_two(0, compare="run", step="0")
    assert "'other' has no weights up to step 0; it is asked at step 8." in app.info[0].value.replace("\\", "")
