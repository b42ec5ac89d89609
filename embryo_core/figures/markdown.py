"""Text from outside, in Markdown that is never read as markup."""

import re

JOINER = "\u2060"  # word joiner: has no width, and no line breaks there
# Streamlit makes links, icons and arrows of these after the marks were read, so that a backslash does not stop it.
MADE_LATER = (
    re.compile(r"(:)(?=//|[\w+/-]+:)"),  # https://, :icon:
    re.compile(r"(?<=[\w.+-])(@)(?=[\w-])"),  # someone@example.org
    re.compile(r"(www)(?=\.)", re.IGNORECASE),
    re.compile(r"(?<!\S)([<>~-])(?=[>=-]+(?!\S))"),  # -> <-> -- >=
)


def literal(text: str) -> str:
    """Return Markdown that shows a text as it is, on one line: all punctuation escaped, no link and no icon made."""
    line = " ".join(text.split())
    for pattern in MADE_LATER:
        line = pattern.sub(rf"\1{JOINER}", line)
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", line)
