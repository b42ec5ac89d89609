"""Tests of `literal`, which shows text from outside letter by letter."""

import string

import pytest

from embryo_core.figures.markdown import JOINER, literal


def test_every_punctuation_mark_is_escaped() -> None:
    """Each ASCII mark has a backslash before it; letters, digits, spaces and other scripts have none."""
    assert literal(string.punctuation).replace(JOINER, "") == "".join(f"\\{mark}" for mark in string.punctuation)
    assert literal("Zoë 42 北京") == "Zoë 42 北京"


@pytest.mark.parametrize(
    "text",
    ["https://x.example", "www.x.example", "WWW.x", "a@x.example", ":smile:", ":material_home:", "a -> b", "<->"],
)
def test_addresses_icons_and_arrows_are_broken_up(text: str) -> None:
    """Streamlit makes them after parsing, where backslashes do not help, so a zero-width character is inserted."""
    assert JOINER in literal(text)
    assert literal(text).replace(JOINER, "").replace("\\", "") == text


def test_names_and_options_can_be_copied() -> None:
    """Ordinary texts contain no invisible character."""
    for text in ("albert-demo", "a--b", "step 1,000: 3 heads", "3.5", "--lens", "data/demo/run.json: not valid"):
        assert JOINER not in literal(text)


def test_line_breaks_and_indents_become_spaces() -> None:
    """Markdown would make paragraphs and code of them."""
    assert literal("a\n\n    b\tc") == "a b c"
