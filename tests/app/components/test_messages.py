"""Tests of messages from the browser: malformed ones of any type change nothing and raise nothing."""

import json
import math

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest

from app.components.messages import clicked_column, clicked_row, clicked_values, field, member

MALFORMED = (
    None,
    True,
    3,
    8.0,
    math.nan,
    -math.inf,
    10**400,
    "",
    "linear ",
    [[[[]]]],
    [[8], [16]],
    {},
    {"step": None},
    {"step": "8"},
    {"step": [8]},
    {"step": True, "passing": 0},
    {"step": 7, "passing": True},
    {"step": 10**400, "passing": None},
    {"layer": [1], "head": {"head": 1}},
    {"layer": "1", "head": "1"},
    {"layer": math.nan, "head": None},
)
EVENTS = ("step", "scale", "head")
EVERYTHING = set(EVENTS) | {"layer"}  # parameters of the URL that a message could change


def element_ids(app: AppTest, kind: str) -> list[str]:
    """Return the IDs of all elements of this kind on the page."""
    return [element.proto.id for element in app.get(kind) if element.proto.id]


def send(app: AppTest, **values: object) -> AppTest:
    """Run the page again with these values of its elements; each key is an element's ID, "=" and the value's field."""
    states = WidgetStates()
    for name, value in values.items():
        element, kind = name.rsplit("=", 1)
        states.widgets.add(id=element, **{kind: value})
    return app._run(states)


def send_to_components(app: AppTest, message: object) -> AppTest:
    """Send this message from every component of the page: as each of its events, as its value, and by itself."""
    values = {}
    for component in element_ids(app, "bidi_component"):
        events = [{"event": event, "value": message} for event in EVENTS]
        values[f"$$STREAMLIT_INTERNAL_KEY_{component}__events=json_trigger_value"] = json.dumps([*events, message])
        values[f"{component}=json_value"] = json.dumps(dict.fromkeys(EVENTS, message))
    return send(app, **values)


@pytest.mark.parametrize("section", ["maps", "sentence"])
def test_components_ignore_malformed_messages(section: str, dashboard_with_results) -> None:
    """Time bar, maps, history, copy button and figure files leave the URL unchanged and show no error."""
    app = dashboard_with_results.open("attention", section=section, step="16")
    before = {name: app.query_params.get(name) for name in EVERYTHING}
    assert len(element_ids(app, "bidi_component")) >= 4
    for message in MALFORMED:
        send_to_components(app, message)
        assert not app.exception and not app.error, message
        assert {name: app.query_params.get(name) for name in EVERYTHING} == before, message


def test_components_accept_well_formed_messages(dashboard_with_results) -> None:
    """The same route chooses an existing step and layer, so that the malformed messages do reach their handlers."""
    app = dashboard_with_results.open("attention", step="16")
    send_to_components(app, {"step": 8, "passing": False, "layer": 2, "head": 1})
    assert app.query_params["step"] == "8" and app.query_params["layer"] == "2"


@pytest.mark.parametrize("page", ["knowledge", "tokens", "probing"])
def test_figures_and_tables_ignore_malformed_clicks(page: str, dashboard_with_results) -> None:
    """Malformed customdata of a point or number of a row leaves the URL unchanged and shows no error."""
    app = dashboard_with_results.open(page, step="16")
    before = dict(app.query_params)
    for message in MALFORMED:
        row = None if message == 3 else message  # a table may have a row 3
        text = json.dumps({"selection": {"points": [{"customdata": message}], "cells": [[row, "task"]]}})
        elements = element_ids(app, "plotly_chart") + element_ids(app, "arrow_data_frame")
        send(app, **{f"{element}=string_value": text for element in elements})
        assert not app.exception and not app.error, message
        assert dict(app.query_params) == before, message


def test_messages_are_compared_with_their_type() -> None:
    """True and 1.0 do not equal layer 1, and a field is read only from an object."""
    assert member(1, (1, 2)) == 1
    assert [member(message, (1, 2)) for message in (True, 1.0, "1", [1], 3, None)] == [None] * 6
    assert member("log", ("linear", "log"), str) == "log"
    assert field({"step": 8}, "step") == 8
    assert [field(message, "step") for message in (None, [], "step", 8, {})] == [None] * 5


def test_clicked_values_match_types_of_handler() -> None:
    """A point's leading customdata count if they have the annotated types, a cell if its row or column exists."""

    def handler(name: str, step: int) -> None: ...

    def state(customdata: object) -> dict:
        return {"selection": {"points": [{"customdata": customdata}]}}

    assert clicked_values(state(["noun", 8, 0.5]), handler) == ["noun", 8]
    for customdata in (["noun"], [8, "noun"], ["noun", True], ["noun", 8.0], "noun", None, {"0": "noun", "1": 8}):
        assert clicked_values(state(customdata), handler) == []
    assert clicked_row({"selection": {"cells": [(1, "task")]}}, 2) == 1
    cells = ([], [[2, "task"]], [[-1, "task"]], [["1", "task"]], [[None]], [[]], [1], 1)
    assert [clicked_row({"selection": {"cells": each}}, 2) for each in cells] == [None] * len(cells)
    assert clicked_column({"selection": {"cells": [(1, "task")]}}, {"task"}) == "task"
    cells = ([], [[1]], [[1, "other"]], [[1, 2]], [[1, None]], [1])
    assert [clicked_column({"selection": {"cells": each}}, {"task"}) for each in cells] == [None] * len(cells)
