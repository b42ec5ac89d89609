"""Values of the URL."""

import pytest
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

from app import permalink


def page() -> None:
    """Chooses another view: one value goes, one changes, one comes, two stay."""
    from app import permalink

    for name, value in {"goes": None, "changes": "b", "comes": "c", "stays": "s"}.items():
        permalink.show(name, value)
    permalink.publish()


def test_a_change_of_the_view_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is a place in the browser's history; one that changes nothing isn't sent, other values stay."""
    sent, send = [], QueryParams._send_query_param_msg
    app = AppTest.from_function(page)
    for name, value in {"goes": "g", "stays": "s", "changes": "a", "foreign": ["1", "2"]}.items():
        app.query_params[name] = value
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda params: sent.append(send(params)))
    app.run()
    assert not app.exception and len(sent) == 1
    found = {name: "".join(values) for name, values in app.query_params.items()}
    assert found == {"stays": "s", "changes": "b", "foreign": "12", "comes": "c"}
    app.run()
    assert len(sent) == 1


def test_several_values_are_one_and_several_again() -> None:
    """Whatever they contain; a name without commas stays as it is."""
    names = ["a, b", "50 %", "%2C", "plain"]
    assert permalink.split(permalink.join(names)) == names
    assert permalink.join(["plain", "other"]) == "plain,other"
