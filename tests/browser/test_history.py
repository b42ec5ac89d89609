"""Tests of the browser history: Back and Forward between pages whose URLs are completed by their scripts."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor

LATE = """
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
        const late = "while (!location.search.includes('step')) await new Promise((go) => setTimeout(go, 50));";
        return create(blob.type === "text/javascript" ? new Blob([late, blob], blob) : blob);
    };
"""  # delays the scripts of components until the URL is complete


def test_back_returns_to_previous_page_at_once(visit, app):
    """After two links, two presses of Back show the two pages before.

    A busy browser may add the next page's parameters to the current URL; the next page then replaces that entry.
    """
    visitor = visit(app)
    visitor.open("tokens")
    visitor.follow("Knowledge")
    visitor.expect_query(step="16")
    visitor.follow("Query")
    visitor.expect_query(step="16")
    for title in ("Knowledge", "Tokens"):
        visitor.rest()  # a component that has just appeared may request one more run of its page
        visitor.page.go_back()
        expect(visitor.heading(title)).to_be_visible()
        visitor.settle()
    visitor.expect_query(step="16")
    addresses = "navigation.entries().slice(0, navigation.currentEntry.index + 1).map((entry) => entry.url)"
    before = visitor.page.evaluate(addresses)
    follow = "(pages) => pages.forEach((page) => history.pushState({}, '', `/${page}?run=tiny&scale=log`))"
    visitor.page.evaluate(follow, ["tokens", "knowledge"])
    assert visitor.page.evaluate(addresses) == [*before, f"{app}/knowledge?run=tiny&scale=log"]


@pytest.mark.parametrize(
    ("link", "script"),
    [({}, LATE), pytest.param({"run": "tiny"}, "", marks=pytest.mark.slow)],
    ids=["bare, late", "partial, in time"],
)
def test_back_skips_url_that_page_completed(visit, app, link: dict[str, str], script: str):
    """The URL of a link with few or no parameters and the one that the page completes are a single history entry."""
    visitor = visit(app)
    visitor.page.context.add_init_script(script)
    visitor.open("overview", run="tiny", step="16", scale="log")
    overview = visitor.page.url
    visitor.open("tokens", **link)
    visitor.expect_query(step="16")
    tokens = visitor.page.url
    visitor.page.go_back()
    expect(visitor.heading("Overview")).to_be_visible()
    visitor.rest()
    expect(visitor.page).to_have_url(overview)
    visitor.page.go_forward()
    expect(visitor.heading("Tokens")).to_be_visible()
    expect(visitor.page).to_have_url(tokens)
    if script == LATE:
        check_first_page_of_window(visitor)


def check_first_page_of_window(visitor) -> None:
    """Check that Back in a new window leads to its first URL, which the page has completed."""
    with visitor.page.expect_popup() as window:
        visitor.page.evaluate("address => void window.open(address)", f"{visitor.address}/tokens")
    other = Visitor(window.value, visitor.address)
    other.expect_query(step="16")
    other.rest()
    tokens = other.page.url
    assert other.page.evaluate("navigation.entries().length") == 2
    other.page.go_back()
    expect(other.heading("Tokens")).to_be_visible()
    expect(other.page).to_have_url(tokens)  # not at once: the script is notified after the browser has gone back
    assert not other.errors
