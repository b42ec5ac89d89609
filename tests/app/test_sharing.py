"""One figure alone, and the command that publishes a view."""

from tests.app.conftest import Dashboard


def test_one_figure_alone_hides_the_others(dashboard_with_results: Dashboard):
    """A style names the figure, without a sign that could end it; without the parameter there is none."""
    app = dashboard_with_results.open("tokens", figure="tiny-mask_prediction</style>")
    styles = [one.proto.body for one in app.get("html") if "st-key-figure_" in one.proto.body]
    assert len(styles) == 1 and ".st-key-figure_tiny-mask_prediction--style-" in styles[0]
    app = dashboard_with_results.open("tokens")
    assert not [one for one in app.get("html") if "st-key-figure_" in one.proto.body]


def test_an_unknown_figure_is_one_sentence_with_those_that_exist(dashboard_with_results: Dashboard):
    """It names what was asked for and what the page has; a figure that exists needs none."""
    app = dashboard_with_results.open("tokens", figure="nonsense")
    (sentence,) = [one.value.replace("\\", "") for one in app.info if "nonsense" in one.value]
    name = sentence.split("it has: ")[1].split(",")[0].rstrip(".")
    app = dashboard_with_results.open("tokens", figure=name)
    assert not [one for one in app.info if name in one.value]


def test_the_command_names_the_run_and_the_view(dashboard_with_results: Dashboard):
    """The address has the page, the run and the step."""
    app = dashboard_with_results.open("tokens", step="8")
    (words,) = app.text
    assert (
        "python -m embryo_core site tiny -o site\n" in words.value
        and "\nsite/tokens.html#run=tiny&step=8" in words.value
    )
