"""Escaping of untrusted text for Markdown."""

import re

JOINER = "\u2060"  # word joiner: no width, no line break
# Streamlit turns these into links, icons and arrows after it has parsed the Markdown, so a backslash does not help.
AUTOLINK_PATTERNS = (
    re.compile(r"(:)(?=//|[\w+/-]+:)"),  # https://, :icon:
    re.compile(r"(?<=[\w.+-])(@)(?=[\w-])"),  # someone@example.org
    re.compile(r"(www)(?=\.)", re.IGNORECASE),
    re.compile(r"(?<!\S)([<>~-])(?=[>=-]+(?!\S))"),  # -> <-> -- >=
)


def literal(text: str) -> str:
    """Return Markdown that shows a text literally, on one line: punctuation escaped, no links, no icons."""
    line = " ".join(text.split())
    for pattern in AUTOLINK_PATTERNS:
        line = pattern.sub(rf"\1{JOINER}", line)
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", line)
