"""Tests of the Attention page in a browser: its sections, and the behaviour of heads."""

import csv
import io

from playwright.sync_api import Locator, expect

SECTIONS = {"maps": "Averaged maps", "heads": "What a head does", "sentence": "Your sentence"}


def figure(visitor, number: int) -> Locator:
    """Return the figure of the page with this number, from 0."""
    return visitor.page.locator(".js-plotly-plot").nth(number)


def click_cell(visitor, number: int, layer: int, head: int) -> None:
    """Click a cell of a figure of layers by heads (2 by 2) once it answers the pointer."""
    box = figure(visitor, number).locator(".nsewdrag.drag").bounding_box()
    x = box["x"] + box["width"] * (2 * head - 1) / 4
    y = box["y"] + box["height"] * (2 * layer - 1) / 4
    visitor.point_at(lambda: (x, y), figure(visitor, number).locator(".hoverlayer"), f"layer {layer}, head {head}")
    visitor.page.mouse.click(x, y)


def downloaded_rows(visitor) -> list[dict[str, str]]:
    """Return the rows of the CSV that the first figure saves."""
    menu = visitor.files()
    _, content = visitor.save(menu.get_by_role("button", name="CSV"))
    visitor.close_files()
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_sections_follow_time_bar_links_and_clicks(visit, app):
    """The map of a head changes with the step, and each section opens by its button; the last one also from its link.

    Heading and download have the values of the chosen step. Both figures of layers by heads answer clicks.
    """
    visitor = visit(app)
    visitor.open("attention", pattern="previous", layer="1", head="1")
    check_map_follows_time_bar(visitor)
    for name in ("heads", "sentence", "maps", "heads"):
        visitor.page.get_by_role("radio", name=SECTIONS[name]).click()
        visitor.expect_query(section=name)
        visitor.settle()
    visitor.open_link(visitor.page.url)
    expect(visitor.page.get_by_role("radio", name=SECTIONS["heads"])).to_be_checked()
    expect(figure(visitor, 2)).to_be_visible()
    check_download_follows_time_bar(visitor)
    for number, layer, head in ((0, 2, 1), (1, 1, 2)):
        click_cell(visitor, number, layer, head)
        visitor.expect_query(layer=str(layer), head=str(head), section="heads", pattern="previous")
        title = f"All patterns of layer {layer}, head {head}"
        expect(visitor.page.get_by_role("heading", name=title)).to_be_visible()
        visitor.rest()


def check_map_follows_time_bar(visitor) -> None:
    """Check that the map at step 0 differs from that at the last step, and that only the time bar has a Play button."""
    canvas = visitor.page.locator("canvas").first
    expect(canvas).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Play")).to_have_count(1)
    drawn = "canvas => canvas.toDataURL()"
    last = canvas.evaluate(drawn)
    visitor.page.locator(".bar .track").press("Home")
    expect(visitor.page.locator(".reading .step")).to_have_text("step 0")
    visitor.page.wait_for_function(
        f"([canvas, last]) => ({drawn})(canvas) !== last", arg=[canvas.element_handle(), last]
    )
    visitor.expect_query(step="0")


def check_download_follows_time_bar(visitor) -> None:
    """Check heading and CSV of the section of heads at step 0, and at the last step."""
    rows = {}
    for key, step in (("Home", "0"), ("End", "16")):
        visitor.page.locator(".bar .track").press(key)
        visitor.expect_query(step=step)
        expect(visitor.page.get_by_role("heading", name=f"Previous token, step {step}", exact=True)).to_be_visible()
        visitor.settle()
        rows[step] = downloaded_rows(visitor)
        assert {row["step"] for row in rows[step]} == {step}
    assert [(row["layer"], row["head"]) for row in rows["0"]] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert [row["value"] for row in rows["0"]] != [row["value"] for row in rows["16"]]
