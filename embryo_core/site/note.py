"""Convert a Markdown note to HTML: headings, lists, paragraphs, links, emphasis and code; all else is literal text."""

import re
from collections.abc import Iterator
from html import escape

SPAN_PATTERNS = (  # patterns in escaped text, applied in this order
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^\s()]+|(?!//)[\w./#-]+)\)"), r'<a href="\2">\1</a>'),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
)


def to_html(markdown: str) -> str:
    """Return a note as HTML; everything else is escaped. Links may be http, https, or relative paths in the site."""
    blocks = re.split(r"\n\s*\n", markdown.strip())
    return "\n".join(line for block in blocks if block for line in _block(block.splitlines()))


def _block(lines: list[str]) -> Iterator[str]:
    """Yield the HTML of a block of lines: an optional heading, then a list or a paragraph."""
    if heading := re.match(r"(#{1,3})\s+(.*)", lines[0]):
        level = max(2, len(heading[1]))  # the page has the only h1
        yield f"<h{level}>{_spans(heading[2])}</h{level}>"
        lines = lines[1:]
    if lines and all(re.match(r"\s*[-*]\s", line) for line in lines):
        yield f"<ul>{''.join(f'<li>{_spans(line.split(None, 1)[-1])}</li>' for line in lines)}</ul>"
    elif lines:
        yield f"<p>{_spans(' '.join(lines))}</p>"


def _spans(text: str) -> str:
    text = escape(text.strip())
    for pattern, replacement in SPAN_PATTERNS:
        text = pattern.sub(replacement, text)
    return text
