"""A document that runs its own scripts and nothing else, whatever its data say."""

import base64
import hashlib
import json
import re

import pytest

from embryo_core.share.page import document

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- \u2028 & \"'"


@pytest.fixture
def page() -> str:
    """Return a document with hostile text wherever text goes."""
    return document(HOSTILE, "p { color: red; }", "<p></p>", {"text": HOSTILE, HOSTILE: 1}, ["one();", "two();"])


def test_text_never_becomes_markup(page):
    """The only elements are those of the document: three scripts (the data and two of ours), no image, no comment."""
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 3
    assert "<img" not in page and "<!--" not in page


def test_the_data_are_read_as_they_were(page):
    """What a script parses is what was given."""
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(embedded) == {"text": HOSTILE, HOSTILE: 1}


def test_the_policy_allows_its_own_scripts_alone(page):
    """It names the hash of each script, and no source that a request could go to."""
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in (b"one();", b"two();")]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("script-src " + " ".join(f"'sha256-{digest}'" for digest in hashes))
