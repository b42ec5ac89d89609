"""A film as an animated GIF: each frame is the map at one step, with its axes, colours, step and source drawn in.

The font is the one that matplotlib ships: Pillow's own has no letters beyond Latin, and no "▁".
"""

import io
import textwrap
from functools import cache
from importlib.metadata import distribution

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from embryo_core.share.animation import VIRIDIS, Film, legend, places

FRAME_MS, LAST_MS = 350, 2500
SIDE = 420  # pixels of the map, or a little less: a weight is a whole number of pixels wide
TOP, RIGHT = 64, 24
COLOURS, GREYS = 240, 16  # of the palette's 256 entries
LONGEST_TOKEN = 12
BLACK, GREY, PALE = (30, 30, 30), (110, 110, 110), (210, 210, 210)


def gif_bytes(film: Film, scale: str = "linear") -> bytes:
    """The film as a GIF that repeats, one frame a step; `scale` of the colours is "linear" or "log"."""
    canvas = _Canvas(film, scale)
    levels = np.rint(places(film.weights, scale) * (COLOURS - 1)).astype(np.uint8)
    frames = [canvas.frame(i, level) for i, level in enumerate(levels)]
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)
    return file.getvalue()


class _Canvas:
    """What is the same in all frames, drawn once, and the places of what is not."""

    def __init__(self, film: Film, scale: str):
        self.film = film
        size = film.weights.shape[-1]
        self.cell = max(1, SIDE // size)
        self.side = self.cell * size
        self.left = 116 if film.tokens else 64
        self.below = TOP + self.side + (100 if film.tokens else 44)
        self.width = self.left + self.side + RIGHT
        notes = textwrap.wrap(film.note, (self.width - 40) // 7, break_on_hyphens=False)
        self.base = Image.new("RGB", (self.width, self.below + 104 + 16 * len(notes)), "white")
        self.pen = ImageDraw.Draw(self.base)
        self.pen.text((20, 14), film.title, BLACK, _font(16))
        self._draw_axes(size)
        self._draw_legend(scale)
        self._draw_steps()
        for i, line in enumerate(notes):
            self.pen.text((20, self.below + 92 + 16 * i), line, GREY, _font(12))
        self.palette = _palette()

    def frame(self, index: int, level: np.ndarray) -> Image.Image:
        """The frame of one step, from its levels [L, L] in the palette."""
        frame = self.base.copy()
        pen = ImageDraw.Draw(frame)
        pen.text((20, 38), f"step {self.film.steps[index]:,}", BLACK, _font(14))
        x, y = self.marks[index], self.below + 62
        pen.ellipse((x - 5, y - 5, x + 5, y + 5), BLACK)
        frame = frame.quantize(palette=self.palette, dither=Image.Dither.NONE)
        picture = Image.fromarray(level.repeat(self.cell, axis=0).repeat(self.cell, axis=1), "L")
        frame.paste(Image.frombytes("P", picture.size, picture.tobytes()), (self.left, TOP))
        return frame

    def _draw_axes(self, size: int) -> None:
        tokens = self.film.tokens
        every = -(-11 // self.cell) if tokens else 1 if size <= 12 else 4 if size <= 32 else 8
        for position in range(0, size, every):
            at = int((position + 0.5) * self.cell)
            words = _shortened(tokens[position]) if tokens else str(position)
            self.pen.text((self.left - 8, TOP + at), words, BLACK, _font(11), anchor="rm")
            if tokens:
                self._draw_upright(words, self.left + at, TOP + self.side + 8, centred=False)
            else:
                self.pen.text((self.left + at, TOP + self.side + 6), words, BLACK, _font(11), anchor="ma")
        to, start = ("to", "from") if tokens else ("to position (0 is [CLS])", "from position")
        self.pen.text((self.left + self.side // 2, self.below - 20), to, BLACK, _font(12), anchor="ma")
        self._draw_upright(start, 24, TOP + self.side // 2, centred=True)

    def _draw_upright(self, words: str, x: int, y: int, centred: bool) -> None:
        """Words read from below, their middle column at x; they end at y, or have their middle there."""
        font = _font(12 if centred else 11)
        left, top, right, bottom = font.getbbox(words)
        image = Image.new("L", (right - left + 2, bottom - top + 2))
        ImageDraw.Draw(image).text((1 - left, 1 - top), words, 255, font)
        image = image.rotate(90, expand=True)
        corner = (x - image.width // 2, y - image.height // 2 if centred else y)
        self.base.paste(Image.new("RGB", image.size, BLACK), corner, image)

    def _draw_legend(self, scale: str) -> None:
        width, y = 208, self.below + 6
        for i, colour in enumerate(_colours(width)):
            self.pen.line((self.left + i, y, self.left + i, y + 11), tuple(colour))
        for words, share, anchor in zip(legend(self.film, scale), (0, 0.5, 1), ("la", "ma", "ra"), strict=True):
            self.pen.text((self.left + share * width, y + 16), words, BLACK, _font(11), anchor=anchor)
        self.pen.text((self.left + width + 14, y + 6), f"weight, {scale} scale", BLACK, _font(11), anchor="lm")

    def _draw_steps(self) -> None:
        """A line with a mark for each step, on a logarithmic axis, where step 0 lies at a half."""
        steps = np.log(np.maximum(self.film.steps, 0.5))
        share = (steps - steps[0]) / ((steps[-1] - steps[0]) or 1.0)
        self.marks = (self.left + share * self.side).round().astype(int).tolist()
        y = self.below + 62
        self.pen.line((self.left, y, self.left + self.side, y), PALE, 2)
        for x in self.marks:
            self.pen.line((x, y - 4, x, y + 4), GREY)
        ends = ((0, "la"), (-1, "ra")) if len(steps) > 1 else ((0, "la"),)
        for i, anchor in ends:
            self.pen.text((self.marks[i], y + 10), f"{self.film.steps[i]:,}", GREY, _font(11), anchor=anchor)


def _palette() -> Image.Image:
    greys = np.linspace(0, 255, GREYS).round().astype(np.uint8)[:, None].repeat(3, axis=1)
    image = Image.new("P", (1, 1))
    image.putpalette(np.concatenate([_colours(COLOURS), greys]).tobytes())
    return image


def _colours(count: int) -> np.ndarray:
    """The colour scale as [count, 3] bytes."""
    stops = np.linspace(0, 1, len(VIRIDIS))
    wanted = np.linspace(0, 1, count)
    return np.stack([np.interp(wanted, stops, channel) for channel in VIRIDIS.T], axis=1).round().astype(np.uint8)


def _shortened(token: str) -> str:
    return token if len(token) <= LONGEST_TOKEN else f"{token[: LONGEST_TOKEN - 1]}…"


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    path = distribution("matplotlib").locate_file("matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf")
    return ImageFont.truetype(path, size)
