"""A head's history as an animated GIF: each frame is the map at one step, with axes, colour bar, step and source.

The font is DejaVu Sans, which matplotlib includes: Pillow's own font has only Latin letters, and no "▁".
"""

import io
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distribution

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from embryo_core.curves.step_scales import Scale, axis_shares
from embryo_core.share import map_style
from embryo_core.share.head_history import HeadHistory
from embryo_core.share.map_style import Label
from embryo_core.words import name_step

FRAME_MS, LAST_MS = 350, 2500  # milliseconds of a frame, and of the last one
STILL_MS = 40  # milliseconds of an early frame that still looks like the first
VISIBLE_CHANGE = 1.0  # mean change of the maps above which it is visible, in colour levels
HEADER_HEIGHT = 64  # pixels above the map, for title and step
COLOURS, GREYS = 240, 16  # entries of the palette, 256 in all
FONT = map_style.FONT_SIZE - 1  # pixels; smaller, since this font is wider than a browser's
BLACK, GREY, PALE = (30, 30, 30), (110, 110, 110), (210, 210, 210)  # red, green, blue
ANCHORS = {"left": "lm", "center": "mm", "right": "rm"}


def gif_bytes(history: HeadHistory, scale: Scale = "linear") -> bytes:
    """Return the history as a looping GIF, with one frame per step and colours on a linear or log scale."""
    canvas = _Canvas(history, scale)
    positions = map_style.colour_positions(history.weights, map_style.end_of(history), scale)
    levels = np.rint(positions * (COLOURS - 1)).astype(np.uint8)
    return animated([canvas.frame(i, level) for i, level in enumerate(levels)], levels)


def animated(frames: list[Image.Image], levels: np.ndarray) -> bytes:
    """Return frames as a looping GIF; those before the maps' `levels` [S, height, width] first change are short."""
    change = np.abs(levels - levels[0].astype(int)).mean(axis=(1, 2))
    still = max(int(np.argmax(change > VISIBLE_CHANGE)) - 1, 0)  # the last still frame has the full duration
    times = [STILL_MS] * still + [FRAME_MS] * (len(frames) - 1 - still) + [LAST_MS]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)
    return file.getvalue()


class _Canvas:
    """The constant part of all frames, drawn once, and the positions of the parts that change."""

    def __init__(self, history: HeadHistory, scale: Scale):
        self.history = history
        margins = map_style.margins(history)
        self.cell = max(1, round(map_style.MAX_SIDE / history.size))  # a weight has an integer number of pixels
        self.side = self.cell * history.size
        self.left = map_style.EDGE + margins.left
        self.below = HEADER_HEIGHT + self.side + margins.bottom
        width = self.left + max(self.side, map_style.MAX_SIDE) + margins.right + map_style.EDGE
        notes = map_style.note_lines(history)
        self.base = Image.new("RGB", (width, self.below + 104 + 16 * len(notes)), "white")
        self.pen = ImageDraw.Draw(self.base)
        self.pen.text((map_style.EDGE, 14), history.title, BLACK, font(16))
        self._write(map_style.axis_labels(history), (self.left, HEADER_HEIGHT), (self.side, self.side))
        legend = map_style.legend_of(history, scale)
        levels = np.rint(np.linspace(0, COLOURS - 1, legend.width)).astype(np.uint8)
        self.bar = picture(np.tile(levels, (legend.height, 1)))
        self._write(legend.labels, (self.left, self.below + 6), (legend.width, legend.height))
        self._draw_steps()
        for i, line in enumerate(notes):
            self.pen.text((map_style.EDGE, self.below + 92 + 16 * i), line, GREY, font(12))
        self.palette = palette()

    def frame(self, index: int, level: np.ndarray) -> Image.Image:
        """Return the frame of one step, whose map has the palette levels [L, L]."""
        frame = self.base.copy()
        pen = ImageDraw.Draw(frame)
        pen.text((map_style.EDGE, 38), name_step(self.history.steps[index], self.history.step_unit), BLACK, font(14))
        x, y = self.marks[index], self.below + 62
        pen.ellipse((x - 5, y - 5, x + 5, y + 5), BLACK)
        frame = frame.quantize(palette=self.palette, dither=Image.Dither.NONE)
        frame.paste(picture(level.repeat(self.cell, axis=0).repeat(self.cell, axis=1)), (self.left, HEADER_HEIGHT))
        frame.paste(self.bar, (self.left, self.below + 6))
        return frame

    def _write(self, labels: Iterable[Label], corner: tuple[int, int], box: tuple[int, int]) -> None:
        """Write the labels of a box (width, height) at its corner; skip labels for which the box is too narrow."""
        for label in labels:
            if box[0] < label.least:
                continue
            x, y = (
                c + fraction * length + shift
                for c, fraction, length, shift in zip(corner, label.share, box, label.offset)
            )
            if label.turned:
                self._write_turned(label, round(x), round(y))
            else:
                self.pen.text((x, y), label.text, BLACK, font(FONT), anchor=ANCHORS[label.align])

    def _write_turned(self, label: Label, x: int, y: int) -> None:
        """Write a label that reads upwards, centred at x; it ends at y or is centred there, by its alignment."""
        left, top, right, bottom = font(FONT).getbbox(label.text)
        image = Image.new("L", (int(right - left) + 2, int(bottom - top) + 2))
        ImageDraw.Draw(image).text((1 - left, 1 - top), label.text, 255, font(FONT))
        image = image.rotate(90, expand=True)
        corner = (x - image.width // 2, y if label.align == "right" else y - image.height // 2)
        self.base.paste(Image.new("RGB", image.size, BLACK), corner, image)

    def _draw_steps(self) -> None:
        """Draw a line with a mark for each step, on a log axis."""
        steps = self.history.steps
        self.marks = (self.left + axis_shares(steps, "log") * self.side).round().astype(int).tolist()
        y = self.below + 62
        self.pen.line((self.left, y, self.left + self.side, y), PALE, 2)
        for x in self.marks:
            self.pen.line((x, y - 4, x, y + 4), GREY)
        end_labels = ((0, "la"), (-1, "ra")) if len(steps) > 1 else ((0, "la"),)
        for i, anchor in end_labels:
            self.pen.text((self.marks[i], y + 10), f"{steps[i]:,}", GREY, font(FONT), anchor=anchor)


def picture(levels: np.ndarray) -> Image.Image:
    """Return palette levels [height, width] as an image."""
    return Image.frombytes("P", levels.shape[::-1], levels.tobytes())


def palette() -> Image.Image:
    """Return an image whose palette has the colours of weights, then greys for text and lines."""
    greys = np.linspace(0, 255, GREYS).round().astype(np.uint8)[:, None].repeat(3, axis=1)
    image = Image.new("P", (1, 1))
    image.putpalette(np.concatenate([map_style.colours(COLOURS), greys]).tobytes())
    return image


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of all text, in a size in pixels."""
    path = distribution("matplotlib").locate_file("matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size)
