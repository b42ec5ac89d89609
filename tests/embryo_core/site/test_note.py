"""Tests of notes: Markdown becomes HTML, and no text becomes markup."""

from embryo_core.site.note import to_html


def test_markdown_becomes_html():
    """Headings begin at level 2, below that of the page."""
    html = to_html("# About\n\nA **bold** *word*, `code` and [a link](https://example.org/a_b?c=1&d).\n\n- one\n- two")
    assert "<h2>About</h2>" in html and "<strong>bold</strong> <em>word</em>, <code>code</code>" in html
    assert (
        '<a href="https://example.org/a_b?c=1&amp;d">a link</a>' in html and "<ul><li>one</li><li>two</li></ul>" in html
    )


def test_html_and_script_addresses_are_escaped():
    html = to_html('<script>alert(1)</script> [x](javascript:alert) [y](https://a"onclick=b)')
    assert "<script" not in html and 'href="javascript' not in html and '"onclick' not in html
