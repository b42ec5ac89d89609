"""Tests of the HTML page of a head: it holds every weight, and no token becomes markup."""

import base64
import json
import re

import numpy as np
import pytest

from embryo_core.share import html_page, map_style


def embedded_data(page: str) -> dict:
    """Return the data that the page embeds."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_page_holds_every_weight_and_the_style(history, scale):
    """Weights are stored as 16-bit shares of the largest weight; the rest is the drawing that every renderer uses."""
    data = embedded_data(html_page(history, scale))
    codes = np.frombuffer(base64.b64decode(data["codes"]), "<u2").reshape(history.weights.shape)
    np.testing.assert_allclose(codes / 65535 * data["maximum"], history.weights, atol=0.5 / 65535)
    style = json.loads(json.dumps(map_style.drawing(history, scale)))
    assert {name: data[name] for name in style} == style
    assert history.note in data["note"] and f"Scale: {scale}." in data["note"] and "all 3 steps" in data["note"]


def test_tokens_never_become_markup(sentence):
    """A token that contains a closing script tag stays text."""
    page = html_page(sentence)
    assert embedded_data(page)["tokens"] == list(sentence.tokens)
    assert page.count("<script") == page.count("</script>") == 3 and "<img" not in page
