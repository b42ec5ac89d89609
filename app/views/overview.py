"""Overview: what the run is, how its losses and accuracies went, and what has been computed of it."""

from app import widgets


def show() -> None:
    """Draw the page."""
    widgets.open_page("Overview")
