"""What the captions of the Attention page say: of averaged maps, of all heads, of one sentence."""

from collections.abc import Sequence

from embryo_core.curves.step_scales import Scale
from embryo_core.engine.capabilities import head_groups
from embryo_core.figures.attention import POSITIONS
from embryo_core.figures.markdown import literal
from embryo_core.share import HeadHistory, bertviz, map_style
from embryo_core.types import Run
from embryo_core.words import point, quantity

HOW = {
    "head": "A line from a piece (left) to a piece (right) is as strong as the weight. The coloured squares are the "
    "heads from 1 on: click one to leave it out, click twice for it alone; point at a piece for its links.",
    "model": "Rows are layers, columns are heads; a line from a piece (left) to a piece (right) is as strong as the "
    "weight. Click a head to see it large, with its pieces.",
}


def divided(normalised: bool) -> str:
    """What stands behind a title or a note where rows of maps are `normalised`; nothing where they are as measured."""
    return ", each row divided by its sum" if normalised else ""


def averaged(history: HeadHistory, sentences: Sequence[int], normalised: bool) -> str:
    """The caption of one head's averaged maps; `sentences` [L] are those that reach each position, where known."""
    return (
        f"{literal(history.note)}. From each position (row) to each position (column), 0 to {history.size - 1} with "
        f"[CLS] first. {_entries(sentences)}"
        f"{'' if normalised else 'So rows do not sum to 1; the switch above divides each by its sum. '}"
        f"{map_style.clipping(history)}"
    )


def shared_weights(run: Run) -> str:
    """A remark where the layers of a run share the weights of their heads; nothing where they do not."""
    groups = head_groups(run)
    if groups is None:
        return ""
    which = "All layers" if groups == 1 else f"Layers of each of the {groups} groups"
    return f" {which} share their weights: heads of the same number differ only in their input."


def few_steps(shown: int, total: int) -> str:
    """Which steps have their maps on the page; nothing where all have."""
    if shown == total:
        return ""
    return (
        f" Of {total:,} steps, {shown} have their maps here: log-spaced ones, and the one that the time bar "
        "was last set to. While it is dragged, the last of them up to its step is shown."
    )


def _entries(sentences: Sequence[int]) -> str:
    """Over how many sentences an entry is averaged."""
    counts = f": {sentences[0]:,} reach position 0, {sentences[-1]:,} the last" if sentences else ""
    return f"Each entry is averaged over the sentences that have both positions{counts}. "


def all_heads(steps: int, block: int, shared: bool, normalised: bool = False) -> str:
    """The caption of the small multiples, a pixel for `block` x `block` weights.

    Colours may be `shared`, and rows `normalised`.
    """
    blocks = f"; each pixel is the mean of {block} × {block} weights" if block > 1 else ""
    return (
        "All heads at one step: rows are layers, columns are heads; click a map to see it large. Colours run "
        f"from 0 to the {map_style.CLIP}th percentile of the weights of {'all heads' if shared else 'each head'} "
        f"{f'over all {steps:,} steps' if steps > 1 else 'at this step'}{blocks}{divided(normalised)}."
    )


def all_heads_print(note: str, scale: Scale, shared: bool) -> str:
    """The small print of the small multiples' file, with the `note` of the data."""
    of = "all weights" if shared else "each head's weights"
    return (
        f"{note}; rows are layers, columns are heads; {scale} colours up to the {map_style.CLIP}th percentile "
        f"of {of}"
    )


def layers_over_steps(
    run: Run, head: int, steps: Sequence[int], sentences: int, block: int, end: float, normalised: bool = False
) -> str:
    """The caption of one head's maps in all layers at a few steps, a cell for `block` x `block` weights.

    Rows may be `normalised`.
    """
    blocks = f"; each cell is the mean of {block} × {block} weights" if block > 1 else ""
    n, columns = quantity(sentences, "sentence"), quantity(len(steps), "evaluated step")
    return (
        f"Averaged maps of head {head} of '{literal(run.name)}', n = {n}{divided(normalised)}{blocks}. "
        f"Rows are layers, columns {columns} around the chosen one, each about twice the one before or later. "
        f"From each position (downwards) to each position (rightwards). Colours end at {end:.2g}, the "
        f"{map_style.CLIP}th percentile of the weights shown. Click a map to see it large.{shared_weights(run)}"
    )


def positions(length: int, normalised: bool = False) -> str:
    """The caption of the mean weights on fixed positions, for maps of this length, whose rows may be `normalised`."""
    formulas = "; ".join(f"{name}: {formula}" for name, formula in POSITIONS.values())
    return (
        f"Mean weight of this head on four positions. In the averaged map A, L = {length} positions wide"
        f"{divided(normalised)}: {formulas}. "
        "Every position counts the same here; the section on head behaviour counts every piece the same."
    )


def sentence_at_step(kind: str, run: Run, step: int, size: int, chosen: list[int]) -> str:
    """The caption of bertviz's view, "head" or "model", of the chosen layers on a sentence of so many pieces."""
    which = f"layers {', '.join(map(str, chosen))}" if len(chosen) > 1 else f"layer {chosen[0]}"
    return (
        f"Attention of this one text ({size} pieces, [CLS] and [SEP] counted; \\#\\# marks a piece inside a word), "
        f"run '{literal(run.name)}', {point(step, run.step_unit)}, {which}. {HOW[kind]} Weights below "
        f"{bertviz.FAINTEST} are not drawn. "
        "Drawing: bertviz (Vig, 2019)."
    )


def few_layers(few: int, layers: int) -> str:
    """That the view begins with a few of the layers; nothing where it shows all."""
    return f" It begins with {few} of {layers} layers; more make it slower." if few < layers else ""


def sentence_over_steps(history: HeadHistory) -> str:
    """The caption of one head's maps of a sentence."""
    return (
        f"Attention weight of layer {history.layer}, head {history.head} from each piece (row) to each piece (column) "
        f"of this one text ({history.size} pieces). {map_style.clipping(history)} Play, or drag the time bar."
    )
