"""A caption in two parts: its first sentence, which stands below the figure, and the rest, behind an info mark."""

import re

END = re.compile(r"(?<=[^\\][.!?]) (?=[A-Z0-9\"“*≥])")  # of a sentence; a capital, digit or mark begins the next


def split(caption: str) -> tuple[str, str | None]:
    """The first sentence and what follows it; None where nothing does.

    >>> split("Share of facts, 95 % certain. Click a point.")
    ('Share of facts, 95 % certain.', 'Click a point.')
    """
    first, *rest = END.split(caption.strip(), maxsplit=1)
    return first, rest[0] if rest else None
