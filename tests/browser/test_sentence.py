"""Tests of the section Your sentence in a browser: bertviz, one head over the steps, and hostile text."""

import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import FrameLocator, expect

from embryo_core.share import HeadHistory, head_view, html_page, model_view
from embryo_core.types import StepUnit

HOSTILE = "</script><img src=x onerror=hacked=1>"
FOREIGN = "<script>hacked=1</script><img src=x onerror=hacked=1>"
TOKENS = ("[CLS]", HOSTILE, "${hacked=1}", "[SEP]")
FRAMES_SEEN = """() => {
    const hosts = [...document.querySelectorAll("*")];
    const host = hosts.map((one) => one.shadowRoot?.querySelector(".frames")).find(Boolean);
    const drawn = (frame) => !frame.className && frame.contentDocument?.querySelector("svg");
    window.blank = 0;
    const look = () => { window.blank += [...host.children].some(drawn) ? 0 : 1; requestAnimationFrame(look); };
    look();
}"""


@pytest.fixture
def weights() -> np.ndarray:
    """Return attention weights [2 layers, 2 heads, 4, 4] over TOKENS, none too faint to be drawn."""
    return np.full((2, 2, 4, 4), 0.05) + 0.8 * np.eye(4)


def bertviz(visitor) -> FrameLocator:
    """Return the frame in which bertviz draws."""
    return visitor.page.frame_locator('iframe[title^="bertviz"]')


# === On the Attention page ===


def go_to_first_step(visitor) -> None:
    """Go to step 0, and check that bertviz is never blank in between."""
    visitor.page.evaluate(FRAMES_SEEN)
    visitor.page.locator(".bar .track").press("Home")
    visitor.expect_query(step="0")
    expect(visitor.page.get_by_role("heading", name="All heads at step 0")).to_be_visible()
    visitor.settle()
    expect(visitor.page.locator("iframe.coming")).to_have_count(0)
    assert visitor.page.evaluate("window.blank") == 0


def check_frame_fits_and_is_dark(visitor) -> None:
    """Check that nothing of bertviz is cut off at the bottom, and that its background is dark."""
    expect(bertviz(visitor).locator("svg").first).to_be_visible()
    shown = bertviz(visitor).locator("html").evaluate("html => [html.scrollHeight, html.clientHeight]")
    assert shown[0] <= shown[1]
    frame = visitor.page.locator('iframe[title^="bertviz"]').screenshot()
    with Image.open(io.BytesIO(frame)) as picture:
        assert max(picture.convert("RGB").getpixel((picture.width - 2, picture.height - 2))) < 60


def test_views_of_bertviz_fit_page_and_keep_choices_at_another_step(visit, app):
    """On a dark page both views are dark and whole, and every piece is drawn on both sides of the head view.

    At another step its hidden head and chosen layer stay so, and the head enlarged in the model view stays open.
    """
    visitor = visit(app)
    visitor.page.emulate_media(color_scheme="dark")
    visitor.open("attention", section="sentence", sentence="The cat sat .", heads="head")
    check_frame_fits_and_is_dark(visitor)
    frame = bertviz(visitor)
    expect(frame.locator("#left text").last).to_have_text("[SEP]")
    pieces = frame.locator("#left text").all_text_contents()
    assert pieces[0] == "[CLS]" and pieces[-1] == "[SEP]" and frame.locator("#right text").count() == len(pieces)
    expect(frame.locator("#attention .headAttention")).to_have_count(2)
    lines = frame.locator("#attention .headAttention").nth(0).locator("line")
    assert 0 < lines.count() <= len(pieces) ** 2
    frame.locator("svg > g:last-of-type > rect").nth(0).click()
    expect(lines.first).to_have_attribute("stroke-opacity", "0")
    frame.locator("#layer").select_option("2")
    go_to_first_step(visitor)
    expect(bertviz(visitor).locator("#layer")).to_have_value("2")
    expect(lines.first).to_have_attribute("stroke-opacity", "0")

    visitor.open("attention", section="sentence", heads="model", layers="2")  # the link has chosen layer 2
    check_frame_fits_and_is_dark(visitor)
    expect(frame.locator(".attn_background")).to_have_count(2)
    frame.locator("svg > g > rect:last-of-type").nth(1).click(force=True)
    expect(frame.get_by_text("Layer 2, Head 2")).to_be_visible()
    expect(frame.locator("#leftText text, .detail .token").first).to_have_text("[CLS]")
    go_to_first_step(visitor)
    expect(bertviz(visitor).get_by_text("Layer 2, Head 2")).to_be_visible()


def test_one_head_follows_time_bar_and_sentence_runs_no_script(visit, app):
    """The event that the time bar sends to the page while it is dragged draws the map of another step.

    The animation of the head can be saved as GIF and as HTML. A hostile sentence, typed into the box, runs no script on
    the page or in the frame.
    """
    visitor = visit(app)
    visitor.open("attention", section="sentence", layer="2", head="1")
    shown = visitor.page.locator(".history")
    expect(shown).to_have_attribute("data-step", "16")
    expect(visitor.page.get_by_role("button", name="Play")).to_have_count(1)  # that of the time bar
    last = visitor.page.locator("canvas.map").evaluate("canvas => canvas.toDataURL()")
    visitor.page.evaluate("window.dispatchEvent(new CustomEvent('embryo:step', { detail: { step: 0 } }))")
    expect(shown).to_have_attribute("data-step", "0")
    assert visitor.page.locator("canvas.map").evaluate("canvas => canvas.toDataURL()") != last
    canvas = visitor.page.locator("canvas.map")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    cell = box["x"] + 110, box["y"] + 12
    visitor.point_at(lambda: cell, visitor.page.locator(".hover"), "from 0 “[CLS]” to 0 “[CLS]”: weight")
    for label, beginning in (("GIF", b"GIF89a"), ("HTML", b"<!DOCTYPE html>")):
        name, content = visitor.save(visitor.files().get_by_role("button", name=label))
        assert name == f"tiny-sentence-layer2-head1.{label.lower()}"
        assert content.startswith(beginning)
    assert b"tiny, layer 2, head 1" in content
    visitor.close_files()

    box = visitor.page.get_by_role("textbox", name="Your sentence")
    box.fill(HOSTILE)
    box.press("Enter")
    visitor.page.wait_for_function("new URL(location).searchParams.get('sentence')?.includes('onerror')")
    visitor.settle()
    expect(bertviz(visitor).locator("#left text").first).to_have_text("[CLS]")
    hacked = [frame.evaluate("window.hacked") for frame in visitor.page.frames]
    assert len(hacked) > 1 and set(hacked) == {None}
    assert bertviz(visitor).locator("img").count() == 0


# === Documents without a network ===


def test_hostile_tokens_are_drawn_as_text(offline, weights):
    """Both views of bertviz show a token that closes a script literally, and run no script of it."""
    offline.open(head_view(weights, TOKENS, [1, 2], 1).html)
    assert tuple(offline.page.locator("#left text").all_text_contents()) == TOKENS
    assert offline.page.locator("line").count() == 2 * 16
    assert offline.page.evaluate("window.hacked") is None

    offline.open(model_view(weights, TOKENS, [1, 2]).html)
    assert offline.page.locator("line").count() == 2 * 2 * 16
    offline.page.locator("svg > g > rect:last-of-type").nth(0).click(force=True)
    assert tuple(offline.page.locator(".token").all_text_contents()) == TOKENS * 2
    assert offline.page.evaluate("window.hacked") is None


def test_faint_links_are_left_out(offline, weights):
    """Links below 0.01 have no line, and the line after them still leads to its own token."""
    weights[:, :, 0] = [0.3, 0.004, 0.004, 0.692]
    offline.open(head_view(weights, TOKENS, [1, 2], 1).html)
    first = offline.page.locator("#attention .headAttention").first.locator(".tokenAttention").first.locator("line")
    places = first.evaluate_all("lines => lines.map((line) => line.getAttribute('right-token-index'))")
    assert places == ["0", "3"]
    assert first.nth(1).get_attribute("y2") == str(30 + 3.5 * 22.5)


def test_content_security_policy_blocks_foreign_script(offline, weights):
    """If escaping failed, the document's policy would still block a script and an event handler."""
    html = head_view(weights, TOKENS, [1, 2], 1).html
    offline.open(html.replace("</body>", FOREIGN + "</body>"))
    expect(offline.page.locator("img")).to_have_count(1)
    assert offline.page.locator("line").count() and offline.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("tokens", [(), TOKENS], ids=("averaged maps", "a sentence"))
def test_animation_plays_offline_to_last_step(offline, weights, tokens):
    """It starts by itself and stops at the last step; slider, Play and the weights at the pointer work."""
    maps = np.stack([weights[0, 0] / k for k in (4, 2, 1)])
    offline.open(
        html_page(HeadHistory("tiny", 2, 1, HOSTILE, np.array([0, 8, 16]), maps, tokens, step_unit=StepUnit.UPDATES))
    )
    expect(offline.page.locator("#step")).to_have_text("step 16")
    expect(offline.page.get_by_role("button", name="Play")).to_be_visible()
    last = offline.page.locator("#map").evaluate("canvas => canvas.toDataURL()")
    offline.page.locator("#scrub").fill("0")
    expect(offline.page.locator("#step")).to_have_text("step 0")
    assert offline.page.locator("#map").evaluate("canvas => canvas.toDataURL()") != last
    offline.page.locator("#map").hover(position={"x": 150, "y": 40})
    expect(offline.page.locator("#hover")).to_contain_text("weight 0.2125")
    offline.page.get_by_role("button", name="Play").click()
    expect(offline.page.locator("#step")).to_have_text("step 16")
    assert HOSTILE in offline.page.locator("#note").inner_text() and offline.page.evaluate("window.hacked") is None
