"""A head's development as a GIF and as a page: every step is in it, in the colours of the page."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.charts.attention import COLOURS
from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.share.animation import VIRIDIS, Film, legend, places, read_film, write_film
from embryo_core.share.gif import gif_bytes
from embryo_core.share.page import html_page


@pytest.fixture
def film() -> Film:
    """A head that turns from uniform to its own diagonal in three steps."""
    weights = np.stack([np.full((4, 4), 0.25), 0.125 + 0.5 * np.eye(4), np.eye(4)]).astype(np.float32)
    return Film("tiny", 2, 1, "Attention weights, averaged over 1,000 sentences", np.array([0, 8, 16]), weights)


@pytest.fixture
def sentence_film(film: Film) -> Film:
    """The same of a sentence with hostile, long and foreign pieces."""
    tokens = ("[CLS]", "</script><img src=x onerror=alert(1)>", "Þαж▁", "[SEP]")
    return Film("tiny", 2, 1, "One sentence", film.steps, film.weights, tokens)


# === What is shown ===


def test_a_film_is_the_stored_history(tiny_results):
    """Steps and weights are those of the results, and the note says on what data they are."""
    film, history = read_film(tiny_results, 2, 1), results.read_attention(tiny_results, 2, 1)
    np.testing.assert_array_equal(film.steps, history.steps)
    np.testing.assert_array_equal(film.weights, history.weights)
    assert film.title == "tiny, layer 2, head 1" and f"{history.sentences:,} sentences" in film.note


def test_without_maps_the_command_is_told(tiny_run):
    """A run that was not evaluated."""
    with pytest.raises(ResultsError, match="has no attention maps yet; .* evaluate tiny --metrics attention"):
        read_film(tiny_run, 1, 1)


@pytest.mark.parametrize(("layer", "head"), [(3, 1), (1, 3), (0, 1), (1, -1)])
def test_a_head_that_is_not_there_is_told_with_those_that_are(tiny_results, layer, head):
    """Layers and heads count from 1."""
    with pytest.raises(ResultsError, match=f"no layer {layer}, head {head}: its layers are 1 to 2, its heads 1 to 2"):
        read_film(tiny_results, layer, head)


def test_colours_are_those_of_the_attention_page(film):
    """The same colour stops; the scale ends at the largest weight of all steps."""
    assert VIRIDIS.tolist() == COLOURS
    np.testing.assert_allclose(places(film.weights, "linear")[0], 0.25)
    assert places(film.weights, "linear").max() == 1
    np.testing.assert_allclose(places(film.weights, "log")[0], 1 + np.log10(0.25) / 3)
    assert places(film.weights, "log")[2].min() == 0
    assert legend(film, "linear") == ["0", "0.5", "1"] and legend(film, "log") == ["≤ 0.001", "0.032", "1"]


# === GIF ===


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_gif_has_a_frame_for_each_step_and_repeats(film, scale):
    """The last frame stays longest."""
    image = Image.open(io.BytesIO(gif_bytes(film, scale)))
    assert (image.format, image.n_frames, image.info["loop"]) == ("GIF", 3, 0)
    times = []
    for i in range(3):
        image.seek(i)
        times.append(image.info["duration"])
    assert times[0] == times[1] < times[2]


def test_a_frame_shows_its_map_in_its_colours(film):
    """At the last step the diagonal has the scale's last colour, all else its first; titles and axes stand around it."""
    image = Image.open(io.BytesIO(gif_bytes(film)))
    image.seek(2)
    pixels = np.asarray(image.convert("RGB"))[64:, 64:]
    cell = 420 // 4
    for row in range(4):
        for column in range(4):
            centre = pixels[cell * row + cell // 2, cell * column + cell // 2]
            np.testing.assert_allclose(centre, VIRIDIS[-1 if row == column else 0], atol=1)
    assert (np.asarray(image.convert("L"))[:64] < 100).any()


def test_long_sentences_and_foreign_pieces_are_drawn(sentence_film):
    """Pieces label the axes; with 200 of them the map is still there."""
    assert Image.open(io.BytesIO(gif_bytes(sentence_film))).n_frames == 3
    weights = np.random.default_rng(0).dirichlet(np.ones(200), size=(1, 200)).astype(np.float32)
    film = Film("tiny", 1, 1, "One sentence", np.array([0]), weights, ("piece",) * 200)
    assert min(Image.open(io.BytesIO(gif_bytes(film, "log"))).size) > 400


# === HTML ===


def test_a_page_holds_every_weight(film):
    """Shares of the largest weight in 16 bits."""
    data = embedded(html_page(film))
    codes = np.frombuffer(base64.b64decode(data["codes"]), "<u2").reshape(film.weights.shape)
    np.testing.assert_allclose(codes / 65535 * data["largest"], film.weights, atol=1e-5)
    assert data["steps"] == [0, 8, 16] and "1,000 sentences" in data["note"]


def test_pieces_never_become_markup(sentence_film):
    """A piece that closes a script stays text."""
    page = html_page(sentence_film)
    assert embedded(page)["tokens"] == list(sentence_film.tokens)
    assert page.count("<script") == page.count("</script>") == 2 and "<img" not in page


def embedded(page: str) -> dict:
    """The data of a page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


# === Files ===


def test_the_suffix_says_what_is_written(film, tmp_path):
    """GIF or HTML, in any case."""
    write_film(film, tmp_path / "head.GIF")
    write_film(film, tmp_path / "head.html", "log")
    assert (tmp_path / "head.GIF").read_bytes().startswith(b"GIF89a")
    assert (tmp_path / "head.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("name", "told"),
    [("head.mp4", "ends in none of .gif, .html"), ("head", "ends in none"), ("none/head.gif", "cannot be written")],
)
def test_what_cannot_be_written_is_told(film, tmp_path: Path, name, told):
    """Another suffix, no suffix, no such folder."""
    with pytest.raises(ResultsError, match=told):
        write_film(film, tmp_path / name)
