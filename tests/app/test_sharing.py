"""Tests of sharing: one figure alone on its page, and the command that publishes a view."""

from tests.app.conftest import Dashboard


def test_figure_parameter_hides_other_figures(dashboard_with_results: Dashboard):
    """A style names the figure, with characters that could end it replaced; without the parameter there is no style."""
    app = dashboard_with_results.open("tokens", figure="tiny-mask_prediction</style>")
    styles = [element.proto.body for element in app.get("html") if "st-key-figure_" in element.proto.body]
    assert len(styles) == 1 and ".st-key-figure_tiny-mask_prediction--style-" in styles[0]
    app = dashboard_with_results.open("tokens")
    assert not [element for element in app.get("html") if "st-key-figure_" in element.proto.body]


def test_unknown_figure_is_reported_with_known_ones(dashboard_with_results: Dashboard):
    """The message names the requested figure and those of the page; a figure that exists gets no message."""
    app = dashboard_with_results.open("tokens", figure="nonsense")
    (sentence,) = [message.value.replace("\\", "") for message in app.info if "nonsense" in message.value]
    name = sentence.split("it has: ")[1].split(",")[0].rstrip(".")
    app = dashboard_with_results.open("tokens", figure=name)
    assert not [message for message in app.info if name in message.value]


def test_publish_command_names_run_and_view(dashboard_with_results: Dashboard):
    """The address of the view in the site has the page, the run and the step."""
    app = dashboard_with_results.open("tokens", step="8")
    (words,) = app.text
    assert (
        "python -m embryo_core site tiny -o site\n" in words.value
        and "\nsite/tokens.html#run=tiny&step=8" in words.value
    )
