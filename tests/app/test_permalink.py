"""Tests of the dashboard's state in the URL."""

import pytest
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

from app import permalink


def page() -> None:
    """Draw another view: one value of the URL goes, one changes, one comes, and two stay."""
    from app import permalink

    for name, value in {"goes": None, "changes": "b", "comes": "c", "stays": "s"}.items():
        permalink.put_in_url(name, value)
    permalink.publish()


def test_change_of_view_sends_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is an entry in the browser's history, so none is sent if nothing changes; foreign values stay."""
    sent, send = [], QueryParams._send_query_param_msg
    app = AppTest.from_function(page)
    for name, value in {"goes": "g", "stays": "s", "changes": "a", "foreign": ["1", "2"]}.items():
        app.query_params[name] = value
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda params: sent.append(send(params)))
    app.run()
    assert not app.exception and len(sent) == 1
    parameters = {name: "".join(values) for name, values in app.query_params.items()}
    assert parameters == {"stays": "s", "changes": "b", "foreign": "12", "comes": "c"}
    app.run()
    assert len(sent) == 1


def test_joined_values_are_split_again() -> None:
    """Values may contain commas and percent signs; others stay readable in the URL."""
    names = ["a, b", "50 %", "%2C", "plain"]
    assert permalink.split(permalink.join(names)) == names
    assert permalink.join(["plain", "other"]) == "plain,other"
