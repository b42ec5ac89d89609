"""The maps of all heads as an animated GIF: rows are layers, columns are heads, and each step is a frame."""

import numpy as np
from PIL import Image, ImageDraw

from embryo_core.curves.step_scales import Scale
from embryo_core.share import map_style
from embryo_core.share.gif import BLACK, COLOURS, GREY, animated, font, palette, picture
from embryo_core.types import StepUnit
from embryo_core.words import name_step

MAP_SIDE = 64  # pixels: side of a head's map
MAP_GAP = 4  # pixels between two maps
LEFT, TOP = 34, 60  # pixels left of and above the maps, for the numbers of layers and heads, and the title
MARGIN, NOTE_FONT, LINE_HEIGHT = 12, 10, 14  # pixels: margin of texts, font size of the note, and height of its lines


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
    """Return the maps of all heads, weights [S, layers, heads, L, L] at steps [S], as a GIF with one frame per step.

    The colour scale ends at a weight of each head's own (`map_style.colour_end`), or at a common one if `shared`. The
    `note` is printed below the maps.
    """
    count, layers, heads = weights.shape[:3]
    scale_ends = map_style.colour_end(weights) if shared else map_style.colour_ends(weights)[:, :, None, None]
    positions = map_style.colour_positions(map_style.shrink(weights, MAP_SIDE), scale_ends, scale)
    levels = np.rint(positions * (COLOURS - 1)).astype(np.uint8)  # [S, layers, heads, M, M], small enough for a frame
    width, height = heads * (MAP_SIDE + MAP_GAP), layers * (MAP_SIDE + MAP_GAP)
    full_width = max(LEFT + width + MAP_GAP, 420)
    notes = _note_lines(note, scale, shared, full_width - 2 * MARGIN)
    base = Image.new("RGB", (full_width, TOP + height + 2 * MARGIN + LINE_HEIGHT * len(notes)), "white")
    pen = ImageDraw.Draw(base)
    pen.text((MARGIN, 10), f"{run}: attention of every head", BLACK, font(14))
    for number, middle in enumerate(np.arange(max(layers, heads)) * (MAP_SIDE + MAP_GAP) + MAP_SIDE // 2, start=1):
        if number <= heads:
            pen.text((LEFT + middle, TOP - 10), str(number), BLACK, font(11), anchor="mm")
        if number <= layers:
            pen.text((LEFT - 10, TOP + middle), str(number), BLACK, font(11), anchor="rm")
    for line, text in enumerate(notes):
        pen.text((MARGIN, TOP + height + MARGIN + LINE_HEIGHT * line), text, GREY, font(NOTE_FONT))
    frames = [_frame(base, name_step(step, unit), level) for step, level in zip(steps, levels, strict=True)]
    return animated(frames, levels.reshape(count, -1, levels.shape[-1]))


def _note_lines(note: str, scale: Scale, is_shared: bool, width: int) -> list[str]:
    """Return the note and an explanation of rows, columns and colours, in lines of at most `width` pixels."""
    end = "one weight for all" if is_shared else "each head's own weight"
    note = f"{note}; " if note else ""
    note += (
        f"rows are layers, columns are heads; {scale} colours end at {end}, "
        f"the {map_style.CLIP_PERCENTILE}th percentile"
    )
    lines: list[str] = []
    for word in note.split():
        extended = f"{lines[-1]} {word}" if lines else word
        is_short = lines and font(NOTE_FONT).getlength(extended) <= width
        lines = [*lines[:-1], extended] if is_short else [*lines, word]
    return lines


def _frame(base: Image.Image, step: str, levels: np.ndarray) -> Image.Image:
    """Return the frame of one step: maps with colour levels [layers, heads, M, M], drawn on a copy of `base`."""
    frame = base.copy()
    ImageDraw.Draw(frame).text((MARGIN, 30), step, BLACK, font(13))
    frame = frame.quantize(palette=palette(), dither=Image.Dither.NONE)
    for layer, head in np.ndindex(levels.shape[:2]):
        head_map = picture(levels[layer, head]).resize((MAP_SIDE, MAP_SIDE), Image.Resampling.NEAREST)
        frame.paste(head_map, (LEFT + head * (MAP_SIDE + MAP_GAP), TOP + layer * (MAP_SIDE + MAP_GAP)))
    return frame
