"""Text from outside is shown letter by letter."""

import string

import pytest

from embryo_core.figures.markdown import JOINER, literal


def test_every_mark_is_escaped() -> None:
    """Each punctuation mark of ASCII has a backslash before it; letters, digits, blanks and other scripts have none."""
    assert literal(string.punctuation).replace(JOINER, "") == "".join(f"\\{mark}" for mark in string.punctuation)
    assert literal("Zoë 42 北京") == "Zoë 42 北京"


@pytest.mark.parametrize(
    "text",
    ["https://x.example", "www.x.example", "WWW.x", "a@x.example", ":smile:", ":material_home:", "a -> b", "<->"],
)
def test_what_becomes_a_link_or_an_icon_after_parsing_is_broken_up(text: str) -> None:
    """A character without width is inside addresses, icons and arrows, which a backslash does not protect."""
    assert JOINER in literal(text)
    assert literal(text).replace(JOINER, "").replace("\\", "") == text


def test_names_and_words_can_be_copied() -> None:
    """A name with hyphens, a number or a command's option has nothing in it that is not shown."""
    for text in ("albert-demo", "a--b", "step 1,000: 3 heads", "3.5", "--lens", "data/demo/run.json: not valid"):
        assert JOINER not in literal(text)


def test_a_text_stays_on_its_line() -> None:
    """Line breaks and indents, of which Markdown makes paragraphs and code, are blanks."""
    assert literal("a\n\n    b\tc") == "a b c"
