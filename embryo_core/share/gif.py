"""Attention maps as animated GIFs, of one head or of all heads; each step is a frame.

Pillow draws them on pictures of palette indices: first the colours of weights, then greys for text and lines. The font
is DejaVu Sans, which matplotlib includes: Pillow's own font has only Latin letters, and no "▁".
"""

import io
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import distribution

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from embryo_core.curves.step_scales import Scale, axis_shares
from embryo_core.share import map_style
from embryo_core.share.head_history import HeadHistory
from embryo_core.share.map_style import EDGE, Label
from embryo_core.types import StepUnit
from embryo_core.words import name_step

FRAME_MS, LAST_MS = 350, 2500  # milliseconds of a frame, and of the last one
STILL_MS = 40  # milliseconds of an early frame that still looks like the first
VISIBLE_CHANGE = 1.0  # mean change of the maps above which it is visible, in colour levels
HEADER_HEIGHT = 64  # pixels above the map, for title and step
MAP_SIDE, MAP_GAP = 64, 4  # pixels: side of a small map, and gap between two of them
GRID_LEFT, GRID_TOP = 34, HEADER_HEIGHT + 12  # pixels left of and above the small maps, for the numbers of their heads
FONT = map_style.FONT_SIZE - 1  # pixels; smaller, since this font is wider than a browser's
TITLE_FONT, STEP_FONT, NOTE_FONT = 15, 14, 12  # pixels
LINE_HEIGHT = 16  # pixels of a line of the note
COLOURS, GREYS = 240, 16  # entries of the palette
BLACK, GREY, PALE, WHITE = 242, 246, 252, 255  # greys of the palette
ANCHORS = {"left": "lm", "center": "mm", "right": "rm"}


def gif_bytes(history: HeadHistory, scale: Scale = "linear") -> bytes:
    """Return one head's maps as a looping GIF with axes and legend, on a linear or log colour scale."""
    margins, legend = map_style.margins(history), map_style.legend(history, scale)
    side = history.size * max(1, round(map_style.MAX_SIDE / history.size))  # a weight is an integer number of pixels
    left, below = EDGE + margins.left, HEADER_HEIGHT + side + margins.bottom
    width = left + max(side, map_style.MAX_SIDE) + margins.right + EDGE
    canvas = _canvas(width, below + 92, history.title, history.note)
    pen = ImageDraw.Draw(canvas)
    _write(pen, map_style.axis_labels(history), (left, HEADER_HEIGHT), (side, side))
    bar = map_style.colour_levels(np.linspace(0, 1, legend.width), 1, count=COLOURS)
    canvas.paste(Image.fromarray(np.tile(bar, (legend.height, 1))), (left, below + 6))
    _write(pen, legend.labels, (left, below + 6), (legend.width, legend.height))
    marks = _draw_steps(pen, history.steps, left, below + 62, side)
    levels = map_style.colour_levels(history.weights, map_style.end_of(history), scale, COLOURS)
    names = [name_step(step, history.step_unit) for step in history.steps]
    return _animate(canvas, names, levels[:, None, None], (left, HEADER_HEIGHT), side, marks)


def all_heads_gif(
    run: str,
    steps: np.ndarray,
    weights: np.ndarray,
    scale: Scale = "linear",
    shared: bool = False,
    *,
    unit: StepUnit,
    note: str = "",
) -> bytes:
    """Return the maps of all heads, weights [S, layers, heads, L, L] at steps [S], as a GIF; rows are layers.

    The colour scale ends at a weight of each head's own (`map_style.colour_end`), or at a common one if `shared`. The
    `note` is printed below the maps.
    """
    layers, heads = weights.shape[1:3]
    scale_ends = map_style.colour_end(weights) if shared else map_style.colour_ends(weights)[:, :, None, None]
    levels = map_style.colour_levels(map_style.shrink(weights, MAP_SIDE), scale_ends, scale, COLOURS)
    distance = MAP_SIDE + MAP_GAP
    width = max(GRID_LEFT + heads * distance + MAP_GAP, 420)
    canvas = _canvas(width, GRID_TOP + layers * distance + EDGE, f"{run}: attention of every head", note)
    pen = ImageDraw.Draw(canvas)
    for head in range(heads):
        middle = GRID_LEFT + head * distance + MAP_SIDE // 2
        pen.text((middle, GRID_TOP - 10), str(head + 1), BLACK, _font(FONT), anchor="mm")
    for layer in range(layers):
        middle = GRID_TOP + layer * distance + MAP_SIDE // 2
        pen.text((GRID_LEFT - 10, middle), str(layer + 1), BLACK, _font(FONT), anchor="rm")
    names = [name_step(step, unit) for step in steps]
    return _animate(canvas, names, levels, (GRID_LEFT, GRID_TOP), MAP_SIDE)


def _animate(
    canvas: Image.Image,
    steps: Sequence[str],
    levels: np.ndarray,
    corner: tuple[int, int],
    side: int,
    marks: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Return frames with maps of colour levels [S, layers, heads, M, M] from `corner` on, as a looping GIF.

    Each frame has the name of its step and its mark, if there are any. Frames before the maps first change are short.
    """
    frames, palette = [], _palette()
    for i, step in enumerate(steps):
        frame = canvas.copy()
        pen = ImageDraw.Draw(frame)
        pen.text((EDGE, 38), step, BLACK, _font(STEP_FONT))
        for x, y in marks[i : i + 1]:
            pen.ellipse((x - 5, y - 5, x + 5, y + 5), BLACK)
        for layer, head in np.ndindex(levels.shape[1:3]):
            picture = Image.fromarray(levels[i, layer, head]).resize((side, side), Image.Resampling.NEAREST)
            frame.paste(picture, (corner[0] + head * (side + MAP_GAP), corner[1] + layer * (side + MAP_GAP)))
        frame.putpalette(palette)
        frames.append(frame)
    change = np.abs(levels - levels[0].astype(int)).mean(axis=(1, 2, 3, 4))
    still = max(int(np.argmax(change > VISIBLE_CHANGE)) - 1, 0)  # the last still frame has the full duration
    times = [STILL_MS] * still + [FRAME_MS] * (len(frames) - 1 - still) + [LAST_MS]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)
    return file.getvalue()


# === Parts of a frame ===


def _canvas(width: int, height: int, title: str, note: str) -> Image.Image:
    """Return a white picture with a title, and with a note below the `height`; a long title makes it wider."""
    width = max(width, round(_font(TITLE_FONT).getlength(title)) + 2 * EDGE)
    letters = int((width - 2 * EDGE) / (0.6 * NOTE_FONT))  # of a line; as in map_svg.js
    lines = textwrap.wrap(note, letters, break_on_hyphens=False)
    canvas = Image.new("L", (width, height + EDGE + LINE_HEIGHT * len(lines)), WHITE)
    pen = ImageDraw.Draw(canvas)
    pen.text((EDGE, 14), title, BLACK, _font(TITLE_FONT))
    for i, line in enumerate(lines):
        pen.text((EDGE, height + LINE_HEIGHT * i), line, GREY, _font(NOTE_FONT))
    return canvas


def _write(pen: ImageDraw.ImageDraw, labels: Iterable[Label], corner: tuple[int, int], box: tuple[int, int]) -> None:
    """Write the labels of a box (width, height) at its corner; skip labels for which the box is too narrow."""
    for label in labels:
        if box[0] < label.least:
            continue
        x, y = (
            c + fraction * length + shift
            for c, fraction, length, shift in zip(corner, label.share, box, label.offset, strict=True)
        )
        if label.turned:  # it reads upwards
            font = ImageFont.TransposedFont(_font(FONT), Image.Transpose.ROTATE_90)
            _, _, width, height = font.getbbox(label.text)
            pen.text((x - width / 2, y if label.align == "right" else y - height / 2), label.text, BLACK, font)
        else:
            pen.text((x, y), label.text, BLACK, _font(FONT), anchor=ANCHORS[label.align])


def _draw_steps(pen: ImageDraw.ImageDraw, steps: np.ndarray, left: int, y: int, length: int) -> list[tuple[int, int]]:
    """Draw a line with a mark for each step, on a log axis; return the positions of the marks."""
    marks = [(left + round(share * length), y) for share in axis_shares(steps, "log").tolist()]
    pen.line((left, y, left + length, y), PALE, 2)
    for x, _ in marks:
        pen.line((x, y - 4, x, y + 4), GREY)
    for i, anchor in ((0, "la"), (-1, "ra")) if len(steps) > 1 else ((0, "la"),):
        pen.text((marks[i][0], y + 10), f"{steps[i]:,}", GREY, _font(FONT), anchor=anchor)
    return marks


def _palette() -> bytes:
    """Return the colours of weights, then greys from black to white, as red, green and blue."""
    greys = np.linspace(0, 255, GREYS).round().astype(np.uint8)[:, None].repeat(3, axis=1)
    return np.concatenate([map_style.colours(COLOURS), greys]).tobytes()


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of all text, in a size in pixels."""
    path = distribution("matplotlib").locate_file("matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size)
