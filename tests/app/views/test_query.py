"""The Query page, run without a browser: answers, trace, tracked words, facts, lens, comparisons, and every refusal."""

import shlex
import threading

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import figures
from app.views import query as query_page
from app.views import query_ask, query_figures
from embryo_core import query, results, runs
from embryo_core.engine.cache import ModelCache
from embryo_core.figures.figure import Figure
from embryo_core.figures.markdown import literal
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Fact, Run
from tests.app.conftest import captions_of

TEXT = "the cat sat on the [MASK] ."
MARKUP = "</script><img src=x onerror=alert(1)> **bold** $(rm) [MASK] '"


def page() -> None:
    """Run the page as main.py does."""
    from app import permalink
    from app.views import query

    query.show()
    permalink.publish()


@pytest.fixture(autouse=True)
def chance_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """List the answers of the tiny run, whose weights are random."""
    monkeypatch.setattr(query_figures.query, "NOISE", 0.0)


@pytest.fixture
def app(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Open the page on the tiny run, not yet drawn."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parent.parent))
    return AppTest.from_function(page, default_timeout=60)


@pytest.fixture
def app_with_facts(tiny_results: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Open the page on the tiny run with its results."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_results.path.parent.parent))
    return AppTest.from_function(page, default_timeout=60)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """List the Figures that the page shows."""
    found, show = [], figures.show
    monkeypatch.setattr(figures, "show", lambda figure, **how: (found.append(figure), show(figure, **how)))
    return found


def ask(app: AppTest, text: str = TEXT, **parameters: str) -> AppTest:
    """Open a link to the page with this text."""
    for name, value in {"text": text, **parameters}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def box(app: AppTest, label: str):
    """Return the select box of this label."""
    return next(found for found in app.selectbox if found.label == label)


def question(run: Run, relation: str, subject: str) -> str:
    """Return the text that asks for a fact's object."""
    template = results.read_sources(run)["world_knowledge"]["templates"][relation]
    return Fact("", relation, template, subject, "").question


def words(table: pd.DataFrame) -> list[str]:
    """Return the words of a table of ranked answers."""
    return table["token"].tolist()


# === What is asked ===


def test_models_are_loaded_while_the_question_is_written(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty box begins to load every checkpoint and does not wait; a second visit does not begin again."""
    models, begun = ModelCache(limit=10**9), []
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    monkeypatch.setattr(query_page, "MODELS", models)
    monkeypatch.setattr(query_page, "Thread", lambda **how: begun.append(threading.Thread(**how)) or begun[-1])
    for _ in range(2):
        app = ask(AppTest.from_function(page, default_timeout=60), "")
        assert not app.error and not app.warning
    (loading,) = begun
    assert loading.daemon
    loading.join()
    assert models.nbytes == sum(models.get(checkpoint).nbytes for checkpoint in runs.checkpoints(own_run))


def test_what_cannot_be_loaded_ahead_is_reported_by_the_first_question(
    own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tokenizer of another run: with an empty box the page stays as it is, a question brings the sentence."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    app = ask(AppTest.from_function(page, default_timeout=60), "")
    assert not app.error and not app.warning
    asked = ask(AppTest.from_function(page, default_timeout=60))
    assert "put that file back" in asked.error[0].value


def test_without_text_it_says_what_to_write(app: AppTest) -> None:
    """An empty box brings an invitation and examples, no error; Ask answers nothing, and the link stays empty."""
    ask(app, "")
    for _ in range(2):
        assert not app.error and not app.warning and not app.metric
        assert app.info[0].value.startswith("The text is empty") and "[MASK]" in app.info[0].value
        assert app.query_params["text"] == "" and app.text_area[0].value == ""
        app.button[0].click().run()


def test_the_page_opens_on_an_answered_example(app: AppTest) -> None:
    """The first example of any run, where the run has none of its own; it stays out of the URL."""
    app.run()
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.exception
    assert "text" not in app.query_params


def test_a_run_opens_on_its_own_examples(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are buttons, and one that it has not learned says so."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    examples = [ExampleQuestion("A [MASK] sat .", "cat", 8), ExampleQuestion("The [MASK] ran .", "dog")]
    results.write_examples(own_run, examples)
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.text_area[0].value == "A [MASK] sat ." and app.metric
    labels = [literal("A [MASK] sat."), literal("The [MASK] ran. (not learned yet)")]
    assert [button.label for button in app.button[1:3]] == labels


def test_damaged_examples_leave_the_question(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says how to find others; those of any run are there."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    results.write_examples(own_run, [ExampleQuestion("A [MASK] sat .", "cat", 8)])
    (own_run.results / "examples.json").write_text('[{"text": 3}]')
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.error
    assert "python -m embryo_core examples RUN" in app.warning[0].value.replace("\\", "")


def test_an_example_fills_the_box(app: AppTest) -> None:
    """A click on an example asks it."""
    app.run()
    app.button[2].click().run()
    assert app.text_area[0].value == query_ask.FILL.examples[1]
    assert app.metric and not app.exception


def test_ask_takes_the_text_that_was_just_typed(app: AppTest) -> None:
    """Leaving the box for the button hands the text over with the click; the example doesn't take its place."""
    app.run()
    app.text_area[0].set_value(TEXT)
    app.button[0].click().run()
    assert app.text_area[0].value == TEXT and app.metric


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no mask <script>alert(1)</script>", "The text has no"),
        ("[MASK]" + " ." * 5_000, "The text is 5,00"),
        ("[MASK]" + " a" * 50_000, "“Text with [MASK] to fill” has 100,006 characters"),
        ("[MASK] " * 20, "The text has 20"),
    ],
)
def test_bad_texts_get_one_sentence(app: AppTest, text: str, sentence: str) -> None:
    """What cannot be answered is said in one warning, without the text itself and without a traceback."""
    ask(app, text)
    (warning,) = app.warning
    assert warning.value.replace("\\", "").startswith(sentence)
    assert "script" not in warning.value


def test_a_refused_text_is_not_offered_as_commands(app: AppTest) -> None:
    """They would be refused as well."""
    ask(app, "no mask")
    assert not app.code and "As commands" not in [expander.label for expander in app.expander]


@pytest.mark.usefixtures("all_opened")
def test_of_two_texts_the_one_that_was_answered_is_offered_as_commands(app: AppTest) -> None:
    """The other was refused."""
    ask(app, "no mask", compare="text", text2=TEXT)
    assert [shlex.split(code.value)[-1] for code in app.code] == [TEXT] * 3


def test_an_empty_second_text_is_shown(app: AppTest) -> None:
    """The first is asked alone, and the page says why."""
    ask(app, compare="text", text2=" ")
    assert app.metric and [info.value for info in app.info] == [
        "The other sentence is empty, so there is nothing to compare with."
    ]


@pytest.mark.usefixtures("all_opened")
def test_text_is_never_markup(app: AppTest) -> None:
    """HTML and Markdown, typed anywhere, reach no element that would render them, and the commands quote them."""
    ask(app, MARKUP, word=MARKUP, compare="text", text2=MARKUP)
    shown = [*app.markdown, *app.caption, *app.title, *app.header, *app.metric, *app.info, *app.warning]
    assert not any("<img" in str(element.value).replace("\\<", "") for element in shown)
    assert not any("**bold**" in str(element.value) for element in shown)
    assert app.text_area[0].value == MARKUP
    assert shlex.split(app.code[0].value)[-1] == MARKUP


@pytest.mark.usefixtures("all_opened")
def test_commands_ask_the_same(app: AppTest) -> None:
    """There is a command for this step, for all steps, for the tracked word and for the lens; "-" begins no option."""
    ask(app, "- a [MASK] .", step="8", word="-x")
    start = ["python", "-m", "embryo_core", "query", "tiny", "--step"]
    assert [shlex.split(code.value) for code in app.code] == [
        [*start, "8", "--", "- a [MASK] ."],
        [*start, "all", "--", "- a [MASK] ."],
        [*start, "all", "--track=-x", "--", "- a [MASK] ."],
        [*start, "all", "--lens", "--", "- a [MASK] ."],
    ]


def test_a_default_view_has_a_short_address(app: AppTest) -> None:
    """Beside run, step, scale and text nothing is in the URL that is not the user's choice."""
    ask(app)
    assert set(app.query_params) == {"run", "step", "scale", "text"}


# === Answers ===


def test_answers_are_those_at_the_chosen_step(app: AppTest, tiny_run: Run) -> None:
    """The table at the chosen step lists the answers of that checkpoint; the trace names the final answer."""
    ask(app, "the cat sat on the [mask] .", step="8")
    expected = query.ask(tiny_run, TEXT, [8]).best(8)
    table = app.dataframe[0].value
    assert words(table) == [p.token for p in expected]
    assert table["probability"].tolist() == pytest.approx([p.probability for p in expected])
    assert app.header[0].value == "At step 8"
    first, second, third = (metric.label for metric in app.metric)
    assert (first, second) == ("Final answer", "First leads at step") and third.startswith("Leads ")


def test_several_masks_can_be_looked_at_one_by_one(app: AppTest) -> None:
    """With two masks the joint answers come first, and the definition is stated; a mask can be chosen by link."""
    ask(app, "the [MASK] of [MASK]")
    assert "|" in words(app.dataframe[0].value)[0]
    assert [*app.dataframe[0].proto.column_order] == ["rank", "probability", "token"]  # answers may be long
    assert any("jointly" in caption for caption in captions_of(app))
    app.session_state["permalink"]["mask"] = "2"
    app.run()
    assert "|" not in words(app.dataframe[0].value)[0]
    assert [*app.dataframe[0].proto.column_order] == ["rank", "token", "probability"]


@pytest.mark.parametrize(
    ("parameters", "which", "mask", "names"),
    [
        ({"mask": "1"}, " ([MASK] 1 of 2)", 1, ["probability-mask1", "lens-mask1"]),
        ({"mask": "2", "curves": "rank"}, " ([MASK] 2 of 2)", 2, ["rank-mask2", "lens-mask2"]),
        ({"mask": "all together"}, " (all masks together)", "all together", ["probability-together"]),
    ],
)
def test_files_say_which_of_several_masks_they_are_about(
    app: AppTest, shown: list[Figure], parameters: dict[str, str], which: str, mask: int | str, names: list[str]
) -> None:
    """In name, title, caption, and each row of the numbers, which have the text too."""
    text = "the [MASK] of [MASK]"
    ask(app, text, **{"curves": "probability", "open": "lens"} | parameters)
    assert [figure.name for figure in shown] == [f"tiny-query-{name}" for name in names]
    for figure in shown:
        assert figure.title.endswith(text + which) and str(figure.caption).count(which) == 1
        assert set(figure.table["text"]) == {text} and set(figure.table["mask"]) == {mask}


def test_files_of_a_text_with_one_mask_name_none(app: AppTest, shown: list[Figure]) -> None:
    """Neither in their name nor in their title."""
    ask(app, open="lens")
    assert [figure.name for figure in shown] == ["tiny-query-probability", "tiny-query-lens"]
    assert all(figure.title.endswith(f": {TEXT}") for figure in shown)


def test_a_run_of_one_checkpoint_does_not_tell_since_when(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is shown, and no step from which it leads."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    for step in (0, 8):
        runs.remove_weights(runs.checkpoint(own_run, step))
    app = ask(AppTest.from_function(page, default_timeout=60))
    assert [metric.label for metric in app.metric] == ["Final answer"]


def test_a_tracked_word_says_its_pieces_and_the_definition(app: AppTest, tiny_run: Run) -> None:
    """A word of several pieces is named with them, its probability at this step, and the chain rule."""
    question = query.read_question(TEXT, load_tokenizer(tiny_run)).track("catsat")
    (row,) = query.ask(tiny_run, question, [8]).table.itertuples()
    ask(app, word="catsat", step="8")
    (caption,) = [caption for caption in captions_of(app) if caption.startswith("Tracked")]
    assert f"{row.probability:.3g}" in caption.replace("\\", "")
    assert f"{len(question.word.pieces)} pieces" in caption and "chain rule" in caption


def test_a_word_that_cannot_be_tracked_leaves_the_answers(app: AppTest) -> None:
    """A word of characters that the vocabulary lacks is one warning; the trace is drawn all the same."""
    ask(app, word="\U0001f40c")
    assert "not in the vocabulary" in app.warning[0].value
    assert app.metric


def test_a_broken_checkpoint_is_said_and_the_others_answer(
    app: AppTest, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a truncated checkpoint the page shows the reason; the trace goes on without it."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    weights = runs.checkpoint(own_run, 8).path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    ask(app, "a [MASK] .", step="8")
    assert "safetensors" in app.error[0].value
    assert "step8" in app.warning[0].value
    assert app.metric


# === The lens ===


def test_the_pinned_cell_lists_its_ten_best(app: AppTest, tiny_run: Run) -> None:
    """The pin of the URL is the cell whose words are listed; without one it is the last layer at the chosen step."""
    found = query.ask_layers(tiny_run, TEXT, steps=[0])
    ask(app, pin="1-0")
    assert words(app.dataframe[-1].value) == [p.token for p in found.best(0, layer=1)]
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert words(app.dataframe[-1].value) == words(app.dataframe[0].value)
    assert "pin" not in app.query_params and app.query_params["open"] in ("lens", ["lens"])


def test_layers_are_asked_once_the_lens_is_unfolded(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then a question costs no passes for them."""
    asked: list[str] = []
    ask_layers = query.ask_layers

    def counted(run: Run, text: str, *others: object) -> query.Answers:
        asked.append(text)
        return ask_layers(run, text, *others)

    monkeypatch.setattr(query, "ask_layers", counted)
    text = "the [MASK] is unfolded ."
    assert ask(app, text).metric and not asked
    ask(AppTest.from_function(page, default_timeout=60), text, open="lens")
    assert asked == [text]


@pytest.mark.parametrize(("pin", "shown"), [("9-8", "Layer 2 at step 8"), ("1-9", "Layer 1 at step 8")])
def test_a_link_to_a_cell_that_the_grid_lacks_is_shown_once(app: AppTest, pin: str, shown: str) -> None:
    """For two questions too; the cell that is shown is named, and the address stays until another is chosen."""
    ask(app, pin=pin, compare="text", text2="a [MASK] .")
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the pin '{pin}', which is not here; showing '{shown}'."]
    assert app.query_params["pin"] == pin
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert "pin" not in app.query_params and not app.info


def test_a_step_that_a_browser_did_not_hear_of_is_no_choice(app: AppTest) -> None:
    """A click while time goes on interrupts the page, and the boxes below the lens still have the step before."""
    ask(app, step="8", open="lens")
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


def test_a_text_that_a_browser_did_not_hear_of_stays(app: AppTest) -> None:
    """That of an example, while the box still has the one before; what the reader types is asked in the same box."""
    ask(app)
    before, example = app._tree, query_ask.FILL.examples[1]
    app.session_state["permalink"]["text"] = example
    app.run()
    app._tree = before
    app.text_area[0].set_value(TEXT).run()
    assert app.text_area[0].value == example and not app.exception
    key = app.text_area[0].key
    app.text_area[0].set_value(TEXT).run()
    assert app.text_area[0].value == TEXT and app.text_area[0].key == key


def test_with_all_masks_together_the_lens_asks_for_one(app: AppTest) -> None:
    """A lens needs one mask; without it there is a sentence in its place."""
    ask(app, "the [MASK] of [MASK]", open="lens")
    assert "Choose one mask" in app.info[0].value


# === Facts ===


@pytest.mark.usefixtures("all_opened")
def test_a_fact_fills_the_text_and_its_stored_answer_is_the_live_one(
    app_with_facts: AppTest, tiny_results: Run
) -> None:
    """Relation and subject ask the fact's question; stored and live answers agree; the object is marked."""
    app = app_with_facts.run()
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


def test_another_text_lets_the_fact_go(app_with_facts: AppTest, tiny_results: Run) -> None:
    """When the text is no longer the fact's question, no subject is chosen and nothing is marked."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    text = question(tiny_results, "P36", fact["subject"])
    app = ask(app_with_facts, text, template="P36", subject=fact["fact"])
    assert box(app, "Subject").value == fact["fact"]
    app.text_area[0].set_value(TEXT).run()
    assert box(app, "Subject").value is None
    assert "subject" not in app.query_params


def test_a_link_to_a_fact_with_another_text_is_shown(app_with_facts: AppTest, tiny_results: Run) -> None:
    """The text is asked, and no fact is chosen; the address stays until the reader chooses another text."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    app = ask(app_with_facts, template="P36", subject=fact["fact"])
    named = f"{fact['subject']} → {fact['object']}"
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the subject '{named}', which is not what the text asks for."]
    assert box(app, "Subject").value is None and app.query_params["subject"] == fact["fact"] and app.metric
    app.text_area[0].set_value("a [MASK] .").run()
    assert not app.info and "subject" not in app.query_params


# === Comparisons ===


def test_two_runs_and_two_sentences_are_four_answers(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run answers each sentence."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    ask(app, compare="both", other="other", text2="a [MASK] .", run="tiny", step="8")
    assert [header.value for header in app.header].count("At step 8") == 4 and len(app.metric) == 12
    asked = [f"{literal(run)}**: {literal(text)}" for text in (TEXT, "a [MASK] .") for run in ("tiny", "other")]
    written = [markdown.value for markdown in app.markdown]
    assert all(any(one in text for text in written) for one in asked)


def test_a_second_sentence_stands_beside_the_first(app: AppTest) -> None:
    """Both sentences are answered at the same step; one without a mask gets a message, the other has its answers."""
    ask(app, compare="text", text2="a [MASK] .", step="8")
    assert [header.value for header in app.header].count("At step 8") == 2
    assert len(app.metric) == 6
    ask(app, compare="text", step="8")
    app.session_state["permalink"]["text2"] = "no mask"
    app.run()
    assert not app.exception
    assert "no" in app.warning[0].value and len(app.metric) == 3


def test_a_second_run_is_shown_at_its_nearest_step(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run answers the same text; where it lacks the step, at the nearest that it has."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    (own_run.path.with_name("other") / "checkpoints" / "step16" / "manifest.json").unlink()
    ask(app, compare="run", other="other", run="tiny", step="16")
    assert [header.value for header in app.header if header.value.startswith("At")] == ["At step 16", "At step 8"]
    assert not app.error and len(app.metric) == 6 and not app.info


def test_a_second_run_that_begins_later_says_so(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked at its first step with weights."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    (own_run.path.with_name("other") / "checkpoints" / "step0" / "manifest.json").unlink()
    ask(app, compare="run", other="other", run="tiny", step="0")
    assert "'other' has no weights up to step 0; it is asked at step 8." in app.info[0].value.replace("\\", "")
