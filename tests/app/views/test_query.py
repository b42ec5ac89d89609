"""Tests of the Query page without a browser: answers, tracked words, lens, facts, comparisons and refused texts."""

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
def list_improbable_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """List all answers: those of the tiny run, whose weights are random, would be left out as noise."""
    monkeypatch.setattr(query_figures.query_captions, "MAX_NOISE_PROBABILITY", 0.0)


@pytest.fixture
def app(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Return the page on the tiny run, not yet drawn."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parent.parent))
    return AppTest.from_function(page, default_timeout=60)


@pytest.fixture
def app_with_facts(tiny_results: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Return the page on the tiny run with its results, not yet drawn."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_results.path.parent.parent))
    return AppTest.from_function(page, default_timeout=60)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return a list that fills with the Figures that the page shows."""
    shown_figures, show = [], figures.show
    monkeypatch.setattr(figures, "show", lambda figure, **how: (shown_figures.append(figure), show(figure, **how)))
    return shown_figures


def ask(app: AppTest, text: str = TEXT, **parameters: str) -> AppTest:
    """Open a link to the page with this text."""
    for name, value in {"text": text, **parameters}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def box(app: AppTest, label: str):
    """Return the select box of this label."""
    return next(element for element in app.selectbox if element.label == label)


def question(run: Run, relation: str, subject: str) -> str:
    """Return the text that asks for a fact's object."""
    template = results.read_sources(run)["world_knowledge"]["templates"][relation]
    return Fact("", relation, template, subject, "").question


def words(table: pd.DataFrame) -> list[str]:
    """Return the words of a table of ranked answers."""
    return table["token"].tolist()


# === The text ===


def test_models_are_loaded_while_question_is_typed(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty box starts to load every checkpoint in the background, once for two visits."""
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


def test_loading_error_is_reported_by_first_question(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer has changed since pretraining: an empty box shows no error, a question does."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    app = ask(AppTest.from_function(page, default_timeout=60), "")
    assert not app.error and not app.warning
    asked = ask(AppTest.from_function(page, default_timeout=60))
    assert "put that file back" in asked.error[0].value


def test_empty_text_gets_instructions(app: AppTest) -> None:
    """There is no error, a click on Ask answers nothing, and the text in the URL stays empty."""
    ask(app, "")
    for _ in range(2):
        assert not app.error and not app.warning and not app.metric
        assert app.info[0].value.startswith("The text is empty") and "[MASK]" in app.info[0].value
        assert app.query_params["text"] == "" and app.text_area[0].value == ""
        app.button[0].click().run()


def test_page_opens_on_answered_example(app: AppTest) -> None:
    """A run without own examples gets the first general one, which is not written to the URL."""
    app.run()
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.exception
    assert "text" not in app.query_params


def test_run_opens_on_its_own_examples(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example is a button, whose label says if the run has not learned it yet."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    examples = [ExampleQuestion("A [MASK] sat .", "cat", 8), ExampleQuestion("The [MASK] ran .", "dog")]
    results.write_examples(own_run, examples)
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.text_area[0].value == "A [MASK] sat ." and app.metric
    labels = [literal("A [MASK] sat."), literal("The [MASK] ran. (not learned yet)")]
    assert [button.label for button in app.button[1:3]] == labels


def test_damaged_examples_fall_back_to_general_ones(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning gives the command that finds new examples."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    results.write_examples(own_run, [ExampleQuestion("A [MASK] sat .", "cat", 8)])
    (own_run.results / "examples.json").write_text('[{"text": 3}]')
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.error
    assert "python -m embryo_core examples RUN" in app.warning[0].value.replace("\\", "")


def test_click_on_example_asks_it(app: AppTest) -> None:
    """The text of the example is then in the box."""
    app.run()
    app.button[2].click().run()
    assert app.text_area[0].value == query_ask.FILL.examples[1]
    assert app.metric and not app.exception


def test_ask_button_takes_text_just_typed(app: AppTest) -> None:
    """The browser sends the text together with the click, and the default example does not replace it."""
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
def test_invalid_texts_get_one_warning(app: AppTest, text: str, sentence: str) -> None:
    """The warning does not quote the text."""
    ask(app, text)
    (warning,) = app.warning
    assert warning.value.replace("\\", "").startswith(sentence)
    assert "script" not in warning.value


def test_refused_text_has_no_commands(app: AppTest) -> None:
    """Commands with this text would be refused as well."""
    ask(app, "no mask")
    assert not app.code and "As commands" not in [expander.label for expander in app.expander]


@pytest.mark.usefixtures("all_opened")
def test_commands_leave_out_refused_text_of_comparison(app: AppTest) -> None:
    """Of two compared texts, the first has no [MASK], so all commands ask the second."""
    ask(app, "no mask", compare="text", text2=TEXT)
    assert [shlex.split(code.value)[-1] for code in app.code] == [TEXT] * 3


def test_empty_second_text_is_reported(app: AppTest) -> None:
    """The first text is answered alone."""
    ask(app, compare="text", text2=" ")
    assert app.metric and [info.value for info in app.info] == [
        "The other sentence is empty, so there is nothing to compare with."
    ]


@pytest.mark.usefixtures("all_opened")
def test_typed_text_is_never_rendered_as_markup(app: AppTest) -> None:
    """No element renders HTML or Markdown that was typed in any box, and the commands quote it."""
    ask(app, MARKUP, word=MARKUP, compare="text", text2=MARKUP)
    shown = [*app.markdown, *app.caption, *app.title, *app.header, *app.metric, *app.info, *app.warning]
    assert not any("<img" in str(element.value).replace("\\<", "") for element in shown)
    assert not any("**bold**" in str(element.value) for element in shown)
    assert app.text_area[0].value == MARKUP
    assert shlex.split(app.code[0].value)[-1] == MARKUP


@pytest.mark.usefixtures("all_opened")
def test_commands_repeat_question(app: AppTest) -> None:
    """The commands are for this step, all steps, the tracked word and the lens; a leading "-" begins no option."""
    ask(app, "- a [MASK] .", step="8", word="-x")
    start = ["python", "-m", "embryo_core", "query", "tiny", "--step"]
    assert [shlex.split(code.value) for code in app.code] == [
        [*start, "8", "--", "- a [MASK] ."],
        [*start, "all", "--", "- a [MASK] ."],
        [*start, "all", "--track=-x", "--", "- a [MASK] ."],
        [*start, "all", "--lens", "--", "- a [MASK] ."],
    ]


def test_default_view_has_short_url(app: AppTest) -> None:
    """Only run, step, scale and text are in the URL; defaults are left out."""
    ask(app)
    assert set(app.query_params) == {"run", "step", "scale", "text"}


# === Answers ===


def test_answers_match_library_at_chosen_step(app: AppTest, tiny_run: Run) -> None:
    """The table lists the answers of that checkpoint; the trace has the final answer and since when it leads."""
    ask(app, "the cat sat on the [mask] .", step="8")
    expected = query.ask(tiny_run, TEXT, [8]).best(8)
    table = app.dataframe[0].value
    assert words(table) == [p.token for p in expected]
    assert table["probability"].tolist() == pytest.approx([p.probability for p in expected])
    assert app.header[0].value == "At step 8"
    first, second, third = (metric.label for metric in app.metric)
    assert (first, second) == ("Final answer", "First leads at step") and third.startswith("Leads ")


def test_several_masks_are_answered_jointly_or_singly(app: AppTest) -> None:
    """Joint answers are the default, and a caption defines them; a link can choose one mask."""
    ask(app, "the [MASK] of [MASK]")
    assert "|" in words(app.dataframe[0].value)[0]
    assert [*app.dataframe[0].proto.column_order] == ["rank", "probability", "token"]  # joint answers may be long
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
def test_files_name_their_mask(
    app: AppTest, shown: list[Figure], parameters: dict[str, str], which: str, mask: int | str, names: list[str]
) -> None:
    """Name, title and caption of a file and each row of its table name the mask; the rows have the text too."""
    text = "the [MASK] of [MASK]"
    ask(app, text, **{"curves": "probability", "open": "lens"} | parameters)
    assert [figure.name for figure in shown] == [f"tiny-query-{name}" for name in names]
    for figure in shown:
        assert figure.title.endswith(text + which) and str(figure.caption).count(which) == 1
        assert set(figure.table["text"]) == {text} and set(figure.table["mask"]) == {mask}


def test_files_of_one_mask_do_not_number_it(app: AppTest, shown: list[Figure]) -> None:
    """Neither the name nor the title of a file has a number of a mask."""
    ask(app, open="lens")
    assert [figure.name for figure in shown] == ["tiny-query-probability", "tiny-query-lens"]
    assert all(figure.title.endswith(f": {TEXT}") for figure in shown)


def test_single_checkpoint_has_only_a_final_answer(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one checkpoint left there is no step since which the answer leads."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    for step in (0, 8):
        runs.remove_weights(runs.checkpoint(own_run, step))
    app = ask(AppTest.from_function(page, default_timeout=60))
    assert [metric.label for metric in app.metric] == ["Final answer"]


def test_caption_of_tracked_word_has_pieces_and_definition(app: AppTest, tiny_run: Run) -> None:
    """The caption gives the number of pieces, the probability at this step, and the chain rule that defines it."""
    question = query.read_question(TEXT, load_tokenizer(tiny_run)).track("catsat")
    (row,) = query.ask(tiny_run, question, [8]).table.itertuples()
    ask(app, word="catsat", step="8")
    (caption,) = [caption for caption in captions_of(app) if caption.startswith("Tracked")]
    assert f"{row.probability:.3g}" in caption.replace("\\", "")
    assert f"{len(question.word.pieces)} pieces" in caption and "chain rule" in caption


def test_untrackable_word_gets_warning_beside_answers(app: AppTest) -> None:
    """A word with characters that the vocabulary lacks cannot be tracked; the text is answered nevertheless."""
    ask(app, word="\U0001f40c")
    assert "not in the vocabulary" in app.warning[0].value
    assert app.metric


def test_broken_checkpoint_is_reported_and_others_answer(
    app: AppTest, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the step of a truncated checkpoint the page shows the error; the trace leaves the checkpoint out."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    weights = runs.checkpoint(own_run, 8).path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    ask(app, "a [MASK] .", step="8")
    assert "safetensors" in app.error[0].value
    assert "step8" in app.warning[0].value
    assert app.metric


# === The lens ===


def test_pinned_cell_lists_its_best_words(app: AppTest, tiny_run: Run) -> None:
    """The URL names the pinned cell; without a pin, the last layer at the chosen step is listed."""
    layer_answers = query.ask_layers(tiny_run, TEXT, steps=[0])
    ask(app, pin="1-0")
    assert words(app.dataframe[-1].value) == [p.token for p in layer_answers.best(0, layer=1)]
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert words(app.dataframe[-1].value) == words(app.dataframe[0].value)
    assert "pin" not in app.query_params and app.query_params["open"] in ("lens", ["lens"])


def test_address_of_a_lens_frame_opens_its_section(app: AppTest, shown: list[Figure]) -> None:
    """Frames that were copied before the lens was folded do not name the open section."""
    ask(app, figure="tiny-query-lens")
    assert "tiny-query-lens" in [figure.name for figure in shown] and not app.info


def test_lens_is_computed_only_when_unfolded(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the lens is folded, a question costs no passes for its layers."""
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
def test_unknown_pinned_cell_in_link_is_reported_once(app: AppTest, pin: str, shown: str) -> None:
    """This holds for two compared texts too; the URL keeps the pin until the reader removes it."""
    ask(app, pin=pin, compare="text", text2="a [MASK] .")
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the pin '{pin}', which is not here; showing '{shown}'."]
    assert app.query_params["pin"] == pin
    next(button for button in app.button if button.label == "Unpin").click().run()
    assert "pin" not in app.query_params and not app.info


def test_stale_step_from_browser_is_ignored(app: AppTest) -> None:
    """If a click interrupts the page while the time bar plays, the boxes below the lens still have the earlier step."""
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


def test_stale_text_from_browser_is_ignored(app: AppTest) -> None:
    """An example was chosen while the browser still had the earlier text; later text is asked in the same box."""
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


def test_lens_asks_for_one_mask(app: AppTest) -> None:
    """With all masks together, a message takes the place of the lens."""
    ask(app, "the [MASK] of [MASK]", open="lens")
    assert "Choose one mask" in app.info[0].value


# === Facts ===


@pytest.mark.usefixtures("all_opened")
def test_live_answer_to_fact_matches_stored_one(app_with_facts: AppTest, tiny_results: Run) -> None:
    """Choosing a relation and a subject fills the box with the fact's question; a caption names the object."""
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


def test_another_text_deselects_fact(app_with_facts: AppTest, tiny_results: Run) -> None:
    """When the text is no longer the fact's question, no subject is chosen, nor named in the URL."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    text = question(tiny_results, "P36", fact["subject"])
    app = ask(app_with_facts, text, template="P36", subject=fact["fact"])
    assert box(app, "Subject").value == fact["fact"]
    app.text_area[0].set_value(TEXT).run()
    assert box(app, "Subject").value is None
    assert "subject" not in app.query_params


def test_fact_in_link_with_another_text_is_reported(app_with_facts: AppTest, tiny_results: Run) -> None:
    """The text is asked and no fact is chosen; the URL keeps the fact until the reader enters another text."""
    fact = results.read_cloze(tiny_results, "P36").iloc[0]
    app = ask(app_with_facts, template="P36", subject=fact["fact"])
    named = f"{fact['subject']} → {fact['object']}"
    notes = [info.value.replace("\\", "") for info in app.info]
    assert notes == [f"The link has the subject '{named}', which is not the fact that the text asks for."]
    assert box(app, "Subject").value is None and app.query_params["subject"] == fact["fact"] and app.metric
    app.text_area[0].set_value("a [MASK] .").run()
    assert not app.info and "subject" not in app.query_params


# === Comparisons ===


def test_two_runs_and_two_sentences_give_four_answers(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run answers each sentence under a heading that names both."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    ask(app, compare="both", other="other", text2="a [MASK] .", run="tiny", step="8")
    assert [header.value for header in app.header].count("At step 8") == 4 and len(app.metric) == 12
    asked = [f"{literal(run)}**: {literal(text)}" for text in (TEXT, "a [MASK] .") for run in ("tiny", "other")]
    written = [markdown.value for markdown in app.markdown]
    assert all(any(question in text for text in written) for question in asked)


def test_two_sentences_are_answered_at_same_step(app: AppTest) -> None:
    """A second sentence without a mask gets a warning, and the first keeps its answers."""
    ask(app, compare="text", text2="a [MASK] .", step="8")
    assert [header.value for header in app.header].count("At step 8") == 2
    assert len(app.metric) == 6
    ask(app, compare="text", step="8")
    app.session_state["permalink"]["text2"] = "no mask"
    app.run()
    assert not app.exception
    assert "no" in app.warning[0].value and len(app.metric) == 3


def test_second_run_is_asked_at_last_earlier_step(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run has no checkpoint at step 16, so it answers at step 8."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    (own_run.path.with_name("other") / "checkpoints" / "step16" / "manifest.json").unlink()
    ask(app, compare="run", other="other", run="tiny", step="16")
    assert [header.value for header in app.header if header.value.startswith("At")] == ["At step 16", "At step 8"]
    assert not app.error and len(app.metric) == 6 and not app.info


def test_second_run_without_earlier_step_is_asked_at_its_first(
    app: AppTest, own_run: Run, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message says that the second run has no weights up to the chosen step."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tiny_run.path.parents[1]}:{own_run.path.parents[1]}")
    own_run.path.rename(own_run.path.with_name("other"))
    (own_run.path.with_name("other") / "checkpoints" / "step0" / "manifest.json").unlink()
    ask(app, compare="run", other="other", run="tiny", step="0")
    assert "'other' has no weights up to step 0; it is asked at step 8." in app.info[0].value.replace("\\", "")
