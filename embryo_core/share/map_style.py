"""The style of attention maps in every renderer: colours, colour scales, and positions of labels and legend.

One head's map has three renderers, which share this style:

- The canvas (head_map.js) plays it on the page, on the static site and in the HTML document: a step is painted within a
  frame of the screen.
- SVG (map_svg.js) is drawn by the browser for print, where letters stay letters; a PNG file is the same painted.
- Pillow (gif.py) writes GIFs, which browsers cannot, and needs no browser.
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from plotly.colors import hex_to_rgb, sequential

from embryo_core.curves.step_scales import Scale
from embryo_core.share.head_history import HeadHistory
from embryo_core.words import quantity

CLIP_PERCENTILE = (
    99  # percentile of the weights at which the colours end, since a few outliers would darken all other weights
)
Alignment = Literal["left", "center", "right"]
ALIGNMENTS: tuple[Alignment, ...] = ("left", "center", "right")
DECADES = 3  # the logarithmic colour scale reaches down to 10**-DECADES of the weight at its end
COLOUR_COUNT = 256  # number of colours of the scale
VIRIDIS = np.array([hex_to_rgb(colour) for colour in sequential.Viridis])  # [10, 3], at evenly spaced weights
MIN_SIDE, MAX_SIDE = 160, 440  # pixels: limits of a map's side
EDGE = 12  # pixels between a picture's edge and its content
FONT_SIZE = 12  # pixels
MIN_LABEL_DISTANCE = 11  # pixels: smallest distance between labels of an axis
MAX_LABEL_LENGTH = 12  # characters, including the ellipsis of a shortened label
SCRIPT = Path(__file__).with_name("head_map.js")  # draws a map on a canvas


@dataclass(frozen=True)
class Margins:
    """Room around a map for its labels, in pixels."""

    left: int
    top: int
    right: int
    bottom: int


POSITION_MARGINS = Margins(left=50, top=8, right=8, bottom=40)
TOKEN_MARGINS = Margins(left=110, top=8, right=8, bottom=104)


@dataclass(frozen=True)
class Label:
    """Text next to a box (a map or a colour bar), placed at a share of its width and height plus an offset in pixels.

    The text is vertically centred at that point. `turned` text reads upwards; with `align` "right" it ends there.
    """

    text: str
    share: tuple[float, float]
    offset: tuple[float, float]
    align: Alignment = "center"
    turned: bool = False
    least: float = 0  # smallest width of the box, in pixels, at which the label is drawn


@dataclass(frozen=True)
class Legend:
    """A colour bar and its labels, with sizes in pixels."""

    labels: tuple[Label, ...]
    width: int = 208
    height: int = 12
    room: tuple[int, int] = (344, 32)  # width and height of the bar with its labels


# === Small maps ===


def shrink(weights: np.ndarray, limit: int) -> np.ndarray:
    """Average square blocks of the last two axes, so that each is at most `limit` long; a partial block is cut off."""
    size = weights.shape[-1]
    block = -(-size // limit)
    if block == 1:
        return weights
    end = size // block * block
    # Sums of strided slices are several times as fast as a mean over axes.
    rows = sum((weights[..., i:end:block, :end] for i in range(1, block)), start=weights[..., 0:end:block, :end])
    return sum((rows[..., i::block] for i in range(1, block)), start=rows[..., ::block]) / block**2


# === Colours ===


def picture(history: HeadHistory, i: int) -> np.ndarray:
    """Return the map at the i-th step as a picture [L, L, 3] uint8, on the history's linear colour scale."""
    return colours()[colour_levels(history.weights[i], end_of(history))]


def colours(count: int = COLOUR_COUNT) -> np.ndarray:
    """Return the colours [count, 3] uint8 (red, green, blue) from the smallest weight to the largest."""
    anchors = np.linspace(0, 1, len(VIRIDIS))
    positions = np.linspace(0, 1, count)
    return np.stack([np.interp(positions, anchors, channel) for channel in VIRIDIS.T], axis=1).round().astype(np.uint8)


def colour_end(weights: np.ndarray) -> float:
    """Return the weight at which the colours of maps end; larger weights look the same. 1 if all weights are 0."""
    return float(np.percentile(weights, CLIP_PERCENTILE)) or float(weights.max()) or 1.0


def colour_ends(weights: np.ndarray) -> np.ndarray:
    """Return the weight at which each head's colours end, [layers, heads]; weights are [S, layers, heads, L, L]."""
    by_head = np.moveaxis(weights, 0, 2)
    return np.array([[colour_end(head) for head in layer] for layer in by_head])


@lru_cache(maxsize=2)  # cached for the maps, legend and caption of two compared runs
def end_of(history: HeadHistory) -> float:
    """Return the weight at which the colour scale of a history ends: the head's own, or the one that heads share."""
    return history.shared_end or colour_end(history.weights)


def clipping(history: HeadHistory) -> str:
    """Return a sentence on where the colour scale of a history ends, and on the share of larger weights."""
    subject, larger = "all heads" if history.shared_end else "this head", _larger(history)
    steps_text = quantity(len(history.steps), "step")
    steps_text = steps_text if len(history.steps) == 1 else f"all {steps_text}"
    return (
        f"The colour scale ends at {end_of(history):.2g}, the {CLIP_PERCENTILE}th percentile of the weights of "
        f"{subject} over {steps_text}; "
        f"{f'{100 * larger:.1f} %' if larger else 'none'} of this head's are larger."
    )


def _larger(history: HeadHistory) -> float:
    return float(np.mean(history.weights > end_of(history)))


def colour_positions(weights: np.ndarray, end: float | np.ndarray, scale: Scale) -> np.ndarray:
    """Return the positions of weights on the colour scale, 0 to 1, on which weights above `end` are 1."""
    shares = np.minimum(weights / end, 1)
    if scale == "linear":
        return shares
    return 1 + np.log10(np.maximum(shares, 10.0**-DECADES)) / DECADES


def colour_levels(
    weights: np.ndarray, end: float | np.ndarray, scale: Scale = "linear", count: int = COLOUR_COUNT
) -> np.ndarray:
    """Return the numbers of the weights' colours among `colours(count)`, uint8; see `colour_positions`."""
    return np.rint(colour_positions(weights, end, scale) * (count - 1)).astype(np.uint8)


def legend(history: HeadHistory, scale: Scale) -> Legend:
    """Return the colour bar of a history, with labels at its ends and middle, and the share of larger weights."""
    end, larger = end_of(history), _larger(history)
    end_text = f"≥ {end:.2g}" if larger else f"{end:.2g}"
    if scale == "linear":
        texts = "0", f"{end / 2:.2g}", end_text
    else:
        texts = f"≤ {end / 10**DECADES:.2g}", f"{end / 10 ** (DECADES / 2):.2g}", end_text
    labels_below = [
        Label(text, (fraction, 1), (0, 10), align)
        for text, fraction, align in zip(texts, (0, 0.5, 1), ALIGNMENTS, strict=True)
    ]
    labels_beside = [Label(f"weight, {scale} scale", (1, 0.5), (12, 0), "left")]
    if larger:
        labels_beside.append(Label(f"{100 * larger:.1f} % are larger", (1, 1), (12, 10), "left"))
    return Legend((*labels_below, *labels_beside))


# === Layout ===


def margins(history: HeadHistory) -> Margins:
    """Return the margins around a map, which are wider if its labels are pieces instead of positions."""
    return TOKEN_MARGINS if history.tokens else POSITION_MARGINS


def axis_labels(history: HeadHistory) -> list[Label]:
    """Return the labels of a map's rows and columns, and the titles of its axes."""
    has_tokens, margin = bool(history.tokens), margins(history)
    start, end = ("from", "to") if has_tokens else ("from position", "to position")
    end += f" (0 is {_shorten(history.opening)})" if history.opening else ""
    labels = [
        Label(end, (0.5, 1), (0, margin.bottom - 8)),
        Label(start, (0, 0.5), (8 - margin.left, 0), turned=True),
    ]
    interval = 1 if has_tokens or history.size <= 12 else 4 if history.size <= 32 else 8
    for position in range(0, history.size, interval):
        text = _shorten(history.tokens[position] if has_tokens else str(position))
        middle = (position + 0.5) / history.size
        # If not all labels fit, only every 2nd, 4th, 8th, ... position has one: the largest power of two that divides
        # a position decides from which width on its label is drawn.
        spacing = position & -position
        min_width = MIN_LABEL_DISTANCE * history.size / spacing if spacing else 0
        labels.append(Label(text, (0, middle), (-6, 0), "right", least=min_width))
        options = {"offset": (0, 6), "align": "right", "turned": True} if has_tokens else {"offset": (0, 12)}
        labels.append(Label(text, (middle, 1), least=min_width, **options))
    return labels


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_LABEL_LENGTH else f"{text[: MAX_LABEL_LENGTH - 1]}…"


# === Data for the browser ===


def drawing(history: HeadHistory, scale: Scale) -> dict[str, Any]:
    """Return what head_map.js needs to draw a history, except the weights, as JSON values."""
    return {
        "title": history.title,
        "steps": history.steps.tolist(),
        "countedIn": history.step_unit,
        "size": history.size,
        "tokens": list(history.tokens),
        "maximum": history.maximum,
        "end": end_of(history),
        "scale": scale,
        "decades": DECADES if scale == "log" else None,
        "colours": colours().tolist(),
        "edge": EDGE,
        "sides": [MIN_SIDE, MAX_SIDE],
        "font": FONT_SIZE,
        "margins": asdict(margins(history)),
        "labels": [asdict(label) for label in axis_labels(history)],
        "legend": asdict(legend(history, scale)),
    }
