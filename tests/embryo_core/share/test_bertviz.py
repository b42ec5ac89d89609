"""Tests of bertviz's views of one sentence's attention: its data are embedded once, rounded, for chosen layers."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from embryo_core.share.bertviz import head_view, model_view

TOKENS = ["[CLS]", "a", "</script><img src=x onerror=alert(1)>", "[SEP]"]


@pytest.fixture
def weights() -> np.ndarray:
    """Return the attention of three layers with two heads over four tokens."""
    return np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 2, 4)).astype(np.float32)


def data(html: str) -> dict:
    """Return the data that the document embeds."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_only_chosen_layers_are_embedded_in_thousandths(weights):
    """Layers 1 and 3 keep their numbers, and each weight is within half a thousandth of the original."""
    embedded = data(head_view(weights, TOKENS, [1, 3], layer=3).html)
    assert embedded["shape"] == [2, 2, 4] and embedded["include_layers"] == [1, 3] and embedded["layer"] == 3
    embedded_weights = np.reshape(embedded["weights"], (2, 2, 4, 4)) / 1000
    np.testing.assert_allclose(embedded_weights, weights[[0, 2]], atol=0.0005)


@pytest.mark.parametrize("view", [lambda *a: head_view(*a, layer=1), model_view], ids=("head view", "model view"))
def test_tokens_are_embedded_once_and_never_as_markup(weights, view):
    """A token that contains a closing script tag stays text."""
    html = view(weights, TOKENS, [1, 2, 3]).html
    assert data(html)["tokens"] == TOKENS
    assert html.count("onerror=alert(1)") == 1 and "<img" not in html
    assert html.count("</script") == 5 and "<!--" not in html  # the data, jQuery, d3, the host, bertviz


def test_layers_and_heads_are_counted_from_1(weights):
    """The model view labels layers and heads as the rest of the dashboard does."""
    embedded = data(model_view(weights, TOKENS, [2]).html)
    assert embedded["include_layers"] == [2] and embedded["include_heads"] == [1, 2]


def test_height_grows_with_layers_and_tokens(weights):
    few, many = model_view(weights, TOKENS, [1]), model_view(np.repeat(weights, 4, axis=0), TOKENS, range(1, 13))
    assert 100 < few.height < many.height
    long = np.full((1, 1, 64, 64), 1 / 64)
    assert head_view(long, ["x"] * 64, [1], 1).height > 64 * 22


def test_page_of_64_tokens_is_smaller_than_3_megabytes():
    """The model has 12 layers with 12 heads; bertviz's own page of the same attention is 26 MB."""
    weights = np.random.default_rng(0).dirichlet(np.full(64, 0.3), size=(12, 12, 64))
    assert len(head_view(weights, ["token"] * 64, range(1, 13), 1).html) < 3e6


def test_token_count_must_match_the_weights(weights):
    """Three tokens for weights of four positions raise an error."""
    with pytest.raises(ValueError, match="3 tokens for weights of 4 positions"):
        head_view(weights, TOKENS[:3], [1], 1)


def test_neither_bertviz_nor_torch_is_imported():
    """The files of bertviz are read, but its Python code, which imports torch, is not run."""
    code = (
        "import sys, numpy; from embryo_core.share.bertviz import head_view;"
        "head_view(numpy.ones((1, 1, 1, 1)), ['a'], [1], 1);"
        "print(*({'torch', 'transformers', 'bertviz', 'mpld3', 'IPython'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
