"""Text from outside, in Markdown that is never read as markup."""

import re


def literal(text: str) -> str:
    """Markdown that shows a text as it is: every punctuation mark escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
