"""Tests of HTML documents that run only their own scripts, whatever text their data contain."""

import base64
import hashlib
import json
import re

import pytest

from embryo_core.share.page import document

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- \u2028 & \"'"


@pytest.fixture
def page() -> str:
    """Return a document with hostile text in every place that takes text."""
    return document(HOSTILE, "p { color: red; }", "<p></p>", {"text": HOSTILE, HOSTILE: 1}, ["one();", "two();"])


def test_text_never_becomes_markup(page):
    """The document has its own three script elements (the data and two scripts), no image and no comment."""
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 3
    assert "<img" not in page and "<!--" not in page


def test_embedded_data_survive_a_round_trip(page):
    """A script that parses the embedded JSON gets the data that were passed in."""
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(embedded) == {"text": HOSTILE, HOSTILE: 1}


def test_policy_allows_only_the_documents_own_scripts(page):
    """The policy names the hash of each script; its default source is 'none', so no request can leave the page."""
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in (b"one();", b"two();")]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("script-src " + " ".join(f"'sha256-{digest}'" for digest in hashes))
