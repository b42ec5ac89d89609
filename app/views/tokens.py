"""Tokens: when each part of speech is learned (Section 3, Figures 1 and 7 to 9)."""

from app import widgets


def show() -> None:
    """Draw the page."""
    widgets.open_page("Tokens")
