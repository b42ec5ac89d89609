"""A note is shown with its marks, and none of its text is markup."""

from embryo_core.site.note import to_html


def test_marks_become_html():
    """Headings begin below the page's own; a list and a link are what they are."""
    html = to_html("# About\n\nA **bold** *word*, `code` and [a link](https://example.org/a_b?c=1&d).\n\n- one\n- two")
    assert "<h2>About</h2>" in html and "<strong>bold</strong> <em>word</em>, <code>code</code>" in html
    assert (
        '<a href="https://example.org/a_b?c=1&amp;d">a link</a>' in html and "<ul><li>one</li><li>two</li></ul>" in html
    )


def test_text_is_never_markup():
    """Neither tags nor addresses that run scripts pass."""
    html = to_html('<script>alert(1)</script> [x](javascript:alert) [y](https://a"onclick=b)')
    assert "<script" not in html and 'href="javascript' not in html and '"onclick' not in html
