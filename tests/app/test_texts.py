"""Every text that a visitor writes has a limit, whether it is typed, sent past the browser, or in a link."""

import pytest

from app.texts import LIMITS

WHERE = {  # page and further parameters by the name of the text
    "text": ("query", {}),
    "text2": ("query", {"compare": "text", "text": "a [MASK] ."}),
    "sentence": ("attention", {"section": "sentence"}),
    "word": ("query", {"text": "a [MASK] ."}),
    "search": ("tokens", {}),
    "facts": ("knowledge", {}),
}


def boxes(app) -> list:
    """All text boxes of a page."""
    return [*app.text_area, *app.text_input]


def test_every_text_has_a_page_here() -> None:
    """No text is left out below."""
    assert WHERE.keys() == LIMITS.keys()


@pytest.mark.parametrize("name", WHERE)
def test_a_link_with_too_long_a_text_gets_one_sentence(name: str, dashboard_with_results) -> None:
    """The text is not taken, and the sentence tells its length and the limit; the page is there."""
    page, more = WHERE[name]
    app = dashboard_with_results.open(page, **more, **{name: "x" * 400_000})
    assert not app.exception and not app.error
    (warning,) = app.warning
    assert "400,000 characters, and at most" in warning.value.replace("\\", "")
    assert f"{LIMITS[name]:,}" in warning.value.replace("\\", "")
    assert max(len(box.value) for box in boxes(app)) < 100
    assert name not in app.query_params or len(app.query_params[name]) < 100


@pytest.mark.parametrize("name", WHERE)
def test_a_text_sent_past_the_browser_is_cut(name: str, dashboard_with_results) -> None:
    """The server reads no more of a typed text than its box takes, which the browser knows too."""
    page, more = WHERE[name]
    app = dashboard_with_results.open(page, **more)
    box = next(box for box in boxes(app) if box.proto.max_chars == LIMITS[name])
    box.set_value("x" * 200_000).run()
    assert not app.exception
    assert max(len(box.value) for box in boxes(app)) == LIMITS[name]
