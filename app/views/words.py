"""Words: how surprising each word of a list is over pretraining, and when it is acquired."""

from app import figures, pickers, results, widgets
from embryo_core.figures import words
from embryo_core.figures.words import METRIC


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Words", lambda run: results.evaluated(run, METRIC))
    measured = results.measured_words(view.run)
    if not measured:
        message = f"Run '{view.run.name}' has no surprisals of words yet."
        widgets.stop_uncomputed(view.run, METRIC, message)
    word = pickers.pick_one("listed_word", "Word", measured)
    figures.show(figures.draw(view, words.curve, word=word))
