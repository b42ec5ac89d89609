"""Text from outside is shown letter by letter."""

import string

from app.captions.markdown import literal


def test_every_mark_is_escaped() -> None:
    """Each punctuation mark of ASCII has a backslash before it; letters, digits, blanks and other scripts have none."""
    assert literal(string.punctuation) == "".join(f"\\{mark}" for mark in string.punctuation)
    assert literal("Zoë 42 北京") == "Zoë 42 北京"
