"""The Query page, run without a browser: answers and trace, and one clear sentence for every text it cannot answer."""

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import query, runs
from embryo_core.model_cache import MODELS
from embryo_core.types import Run


def page() -> None:
    """The page as main.py runs it."""
    from app import permalink
    from app.views import query

    query.show()
    permalink.publish()


@pytest.fixture
def app(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The page on the tiny run, not yet drawn."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parent.parent))
    return AppTest.from_function(page, default_timeout=60)


def ask(app: AppTest, text: str, **parameters: str) -> AppTest:
    """Open a link to the page with this text."""
    for name, value in {"text": text, **parameters}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_without_text_it_says_what_to_write(app: AppTest) -> None:
    """An empty box brings an invitation and examples, no error."""
    app.run()
    assert not app.exception and not app.error and not app.warning
    assert "[MASK]" in app.info[0].value


def test_answers_are_those_of_fill_mask(app: AppTest, tiny_run: Run) -> None:
    """The table at the chosen step lists fill_mask's predictions; the trace names the final answer."""
    ask(app, "the cat sat on the [mask] .", step="8")
    (expected,) = query.fill_mask(MODELS.get(runs.checkpoint(tiny_run, 8)), "the cat sat on the [MASK] .")
    table = app.dataframe[0].value
    assert table["token"].tolist() == [p.token for p in expected]
    assert table["probability"].tolist() == pytest.approx([p.probability for p in expected])
    assert app.subheader[0].value == "At step 8"
    assert [metric.label for metric in app.metric] == [
        "Final answer",
        "First leads at step",
        "Leads for good from step",
    ]


def test_an_example_fills_the_box(app: AppTest) -> None:
    """A click on an example asks it."""
    app.run()
    app.button[0].click().run()
    assert app.text_area[0].value == app.button[0].label
    assert app.metric and not app.exception


def test_several_masks_can_be_looked_at_one_by_one(app: AppTest) -> None:
    """With two masks the joint answers come first, and the definition is stated; a mask can be chosen by link."""
    ask(app, "the [MASK] of [MASK]")
    assert "|" in app.dataframe[0].value["token"][0]
    assert any("jointly" in caption.value for caption in app.caption)
    ask(app, "the [MASK] of [MASK]", mask="2")
    app.session_state["permalink"]["mask"] = "2"
    app.run()
    assert "|" not in app.dataframe[0].value["token"][0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no mask <script>alert(1)</script>", "The text has no [MASK]"),
        ("[MASK]" + " ." * 5_000, "The text is 5,00"),
        ("[MASK]" + " a" * 50_000, "The text has 100,006 characters"),
        ("[MASK] " * 20, "The text has 20 [MASK]s"),
    ],
)
def test_bad_texts_get_one_sentence(app: AppTest, text: str, sentence: str) -> None:
    """What cannot be answered is said in one warning, without the text itself and without a traceback."""
    ask(app, text)
    (warning,) = app.warning
    assert warning.value.startswith(sentence)
    assert "script" not in warning.value


def test_text_is_never_markup(app: AppTest) -> None:
    """HTML and Markdown in the text reach no element that would render them, and the command quotes them."""
    text = "</script><img src=x onerror=alert(1)> **bold** $(rm) [MASK] '"
    ask(app, text)
    shown = [*app.markdown, *app.caption, *app.title, *app.subheader, *app.metric, *app.info, *app.warning]
    assert not any("onerror" in str(element.value) for element in shown)
    assert app.text_area[0].value == text
    assert app.code[0].value.endswith(
        """'</script><img src=x onerror=alert(1)> **bold** $(rm) [MASK] '"'"'' --step 16"""
    )


def test_a_broken_checkpoint_is_said_and_the_others_answer(
    app: AppTest, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a truncated checkpoint the page shows the reason; the trace goes on without it."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    weights = runs.checkpoint(own_run, 8).path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    ask(app, "a [MASK] .", step="8")
    assert "model.safetensors" in app.error[0].value
    assert "step8" in app.warning[0].value
    assert app.metric
