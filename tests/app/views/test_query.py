"""Tests of the Query page without a browser: the text, refused texts, answers and tracked words."""

import shlex

import pytest

from app.views import query_ask
from embryo_core import query, results, runs
from embryo_core.figures.figure import Figure
from embryo_core.figures.markdown import literal
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.app.conftest import captions_of
from tests.app.views.conftest import TEXT, words

MARKUP = "</script><img src=x onerror=alert(1)> **bold** $(rm) [MASK] '"


# === The text ===


def test_loading_error_is_reported_by_first_question(ask, own_run: Run) -> None:
    """The tokenizer has changed since pretraining: an empty box shows no error, a question does."""
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    app = ask("", own_run)
    assert not app.error and not app.warning
    asked = ask(run=own_run)
    assert "put that file back" in asked.error[0].value


def test_empty_text_gets_instructions(ask) -> None:
    """There is no error, a click on Ask answers nothing, and the text in the URL stays empty."""
    app = ask("")
    for _ in range(2):
        assert not app.error and not app.warning and not app.metric
        assert app.info[0].value.startswith("The text is empty") and "[MASK]" in app.info[0].value
        assert app.query_params["text"] == "" and app.text_area[0].value == ""
        app.button[0].click().run()


def test_page_opens_on_answered_example(open_page, tiny_run: Run) -> None:
    """A run without own examples gets the first general one, which is not written to the URL."""
    app = open_page("query", tiny_run)
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.exception
    assert "text" not in app.query_params


def test_run_opens_on_its_own_examples(open_page, own_run: Run) -> None:
    """Each example is a button, whose label says if the run has not learned it yet."""
    examples = [ExampleQuestion("A [MASK] sat .", "cat", 8), ExampleQuestion("The [MASK] ran .", "dog")]
    results.write_examples(own_run, examples)
    app = open_page("query", own_run)
    assert app.text_area[0].value == "A [MASK] sat ." and app.metric
    labels = [literal("A [MASK] sat."), literal("The [MASK] ran. (not learned yet)")]
    assert [button.label for button in app.button[1:3]] == labels


def test_damaged_examples_fall_back_to_general_ones(open_page, own_run: Run) -> None:
    """A warning gives the command that finds new examples."""
    results.write_examples(own_run, [ExampleQuestion("A [MASK] sat .", "cat", 8)])
    (own_run.results / "examples.json").write_text('[{"text": 3}]')
    app = open_page("query", own_run)
    assert app.text_area[0].value == query.EXAMPLE and app.metric and not app.error
    assert "python -m embryo_core examples RUN" in app.warning[0].value.replace("\\", "")


def test_click_on_example_asks_it(open_page, tiny_run: Run) -> None:
    """The text of the example is then in the box."""
    app = open_page("query", tiny_run)
    app.button[2].click().run()
    assert app.text_area[0].value == query_ask.FILL.examples[1]
    assert app.metric and not app.exception


def test_ask_button_takes_text_just_typed(open_page, tiny_run: Run) -> None:
    """The browser sends the text together with the click, and the default example does not replace it."""
    app = open_page("query", tiny_run)
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
def test_invalid_texts_get_one_warning(ask, text: str, sentence: str) -> None:
    """The warning does not quote the text."""
    app = ask(text)
    (warning,) = app.warning
    assert warning.value.replace("\\", "").startswith(sentence)
    assert "script" not in warning.value


def test_refused_text_has_no_commands(ask) -> None:
    """Commands with this text would be refused as well."""
    app = ask("no mask")
    assert not app.code and "As commands" not in [expander.label for expander in app.expander]


@pytest.mark.usefixtures("all_opened")
def test_commands_leave_out_refused_text_of_comparison(ask) -> None:
    """Of two compared texts, the first has no [MASK], so all commands ask the second."""
    app = ask("no mask", compare="text", text2=TEXT)
    assert [shlex.split(code.value)[-1] for code in app.code] == [TEXT] * 3


def test_empty_second_text_is_reported(ask) -> None:
    """The first text is answered alone."""
    app = ask(compare="text", text2=" ")
    assert app.metric and [info.value for info in app.info] == [
        "The other sentence is empty, so there is nothing to compare with."
    ]


@pytest.mark.usefixtures("all_opened")
def test_typed_text_is_never_rendered_as_markup(ask) -> None:
    """No element renders HTML or Markdown that was typed in any box, and the commands quote it."""
    app = ask(MARKUP, word=MARKUP, compare="text", text2=MARKUP)
    shown = [*app.markdown, *app.caption, *app.title, *app.header, *app.metric, *app.info, *app.warning]
    assert not any("<img" in str(element.value).replace("\\<", "") for element in shown)
    assert not any("**bold**" in str(element.value) for element in shown)
    assert app.text_area[0].value == MARKUP
    assert shlex.split(app.code[0].value)[-1] == MARKUP


@pytest.mark.usefixtures("all_opened")
def test_commands_repeat_question(ask) -> None:
    """The commands are for this step, all steps, the tracked word and the lens; a leading "-" begins no option."""
    app = ask("- a [MASK] .", step="8", word="-x")
    start = ["python", "-m", "embryo_core", "query", "tiny", "--step"]
    assert [shlex.split(code.value) for code in app.code] == [
        [*start, "8", "--", "- a [MASK] ."],
        [*start, "all", "--", "- a [MASK] ."],
        [*start, "all", "--track=-x", "--", "- a [MASK] ."],
        [*start, "all", "--lens", "--", "- a [MASK] ."],
    ]


def test_default_view_has_short_url(ask) -> None:
    """Only run, step, scale and text are in the URL; defaults are left out."""
    app = ask()
    assert set(app.query_params) == {"run", "step", "scale", "text"}


# === Answers ===


def test_answers_match_library_at_chosen_step(ask, tiny_run: Run) -> None:
    """The table lists the answers of that checkpoint; the trace has the final answer and since when it leads."""
    app = ask("the cat sat on the [mask] .", step="8")
    expected = query.ask(tiny_run, TEXT, [8]).best(8)
    table = app.dataframe[0].value
    assert words(table) == [p.token for p in expected]
    assert table["probability"].tolist() == pytest.approx([p.probability for p in expected])
    assert app.header[0].value == "At step 8"
    first, second, third = (metric.label for metric in app.metric)
    assert (first, second) == ("Final answer", "First leads at step") and third.startswith("Leads ")


def test_several_masks_are_answered_jointly_or_singly(ask) -> None:
    """Joint answers are the default, and a caption defines them; a link can choose one mask."""
    app = ask("the [MASK] of [MASK]")
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
    ask, shown: list[Figure], parameters: dict[str, str], which: str, mask: int | str, names: list[str]
) -> None:
    """Name, title and caption of a file and each row of its table name the mask; the rows have the text too."""
    text = "the [MASK] of [MASK]"
    ask(text, **{"curves": "probability", "open": "lens"} | parameters)
    assert [figure.name for figure in shown] == [f"tiny-query-{name}" for name in names]
    for figure in shown:
        assert figure.title.endswith(text + which) and str(figure.caption).count(which) == 1
        assert set(figure.table["text"]) == {text} and set(figure.table["mask"]) == {mask}


def test_files_of_one_mask_do_not_number_it(ask, shown: list[Figure]) -> None:
    """Neither the name nor the title of a file has a number of a mask."""
    ask(open="lens")
    assert [figure.name for figure in shown] == ["tiny-query-probability", "tiny-query-lens"]
    assert all(figure.title.endswith(f": {TEXT}") for figure in shown)


def test_single_checkpoint_has_only_a_final_answer(ask, own_run: Run) -> None:
    """With one checkpoint left there is no step since which the answer leads."""
    for step in (0, 8):
        runs.remove_weights(runs.checkpoint(own_run, step))
    app = ask(run=own_run)
    assert [metric.label for metric in app.metric] == ["Final answer"]


def test_caption_of_tracked_word_has_pieces_and_definition(ask, tiny_run: Run) -> None:
    """The caption gives the number of pieces, the probability at this step, and the chain rule that defines it."""
    question = query.read_question(TEXT, load_tokenizer(tiny_run)).track("catsat")
    (row,) = query.ask(tiny_run, question, [8]).table.itertuples()
    app = ask(word="catsat", step="8")
    (caption,) = [caption for caption in captions_of(app) if caption.startswith("Tracked")]
    assert f"{row.probability:.3g}" in caption.replace("\\", "")
    assert f"{len(question.word.pieces)} pieces" in caption and "chain rule" in caption


def test_untrackable_word_gets_warning_beside_answers(ask) -> None:
    """A word with characters that the vocabulary lacks cannot be tracked; the text is answered nevertheless."""
    app = ask(word="\U0001f40c")
    assert "not in the vocabulary" in app.warning[0].value
    assert app.metric


def test_broken_checkpoint_is_reported_and_others_answer(ask, own_run: Run) -> None:
    """At the step of a truncated checkpoint the page shows the error; the trace leaves the checkpoint out."""
    weights = runs.checkpoint(own_run, 8).path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    app = ask("a [MASK] .", own_run, step="8")
    assert "safetensors" in app.error[0].value
    assert "step8" in app.warning[0].value
    assert app.metric
