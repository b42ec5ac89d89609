"""The data of tiles, answers and attention maps in a static site, and the pages that show them."""

from dataclasses import replace
from itertools import product

import pandas as pd

from embryo_core import results
from embryo_core.browser import head_maps
from embryo_core.browser.component import GROWTH, HEAD_GRID, HEAD_HISTORY
from embryo_core.browser.growth import make_tiles, sentence_tile
from embryo_core.curves.step_scales import log_spaced
from embryo_core.errors import FigureError
from embryo_core.figures import attention, head_behaviour, patterns, query_captions
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.figure import Caption, sentences
from embryo_core.share import averaged
from embryo_core.share.head_history import METRIC
from embryo_core.site.parts import Drawing, Panel, Runs, SitePage
from embryo_core.types import Run

HEAD_STEPS, GRID_STEPS = 8, 12  # at most this number of steps for a head's maps, and for the small maps of all heads


# === Tiles and answers ===


def tiles(runs: Runs, axis: AxisChoice) -> Drawing:
    """Return the Overview's tiles: a sentence, a head and curves. Raises FigureError if the run has none of these."""
    payload, tile_count = make_tiles(runs[0], axis.scale)
    if not tile_count:
        raise FigureError("Nothing of this run can be played yet.")
    caption = Caption("They play with the time bar; a click opens the page that shows more.")
    return Drawing(GROWTH, payload, f"{runs[0].name}-growth", "Watch it grow", caption, runs[0])


def answers(runs: Runs, axis: AxisChoice, number: int) -> Drawing:
    """Return the stored best answers to one of a run's examples at each step. Raises FigureError if none are stored."""
    example = results.read_example_questions(runs[0])[number]
    rows = [
        {"run": runs[0].name, "step": answer.step, "text": example.text, "answer": word, "probability": probability}
        for answer in example.answers
        for word, probability in answer.words.items()
    ]
    if not rows:
        raise FigureError("The answers to this text were not stored: python -m embryo_core examples stores them.")
    table = pd.DataFrame(rows)
    caption = Caption(
        f"The best answers to “{example.text}” at each checkpoint that was asked, best first.",
        "Answers below 1 % are left out.",
    )
    payload = head_maps.pack({"sentence": sentence_tile(example)})
    name = f"{runs[0].name}-answers-{number + 1}"
    return Drawing(GROWTH, payload, name, example.text, caption, runs[0], table=table)


def query_page(runs: Runs, axis: StepAxis) -> SitePage:
    """Return the page of the answers to a run's examples, which says when the run learned them."""
    examples = results.read_example_questions(runs[0])
    texts = {example.text: {"number": i} for i, example in enumerate(examples)}
    checkpoint_count = max((len(example.answers) for example in examples), default=0)
    headline = query_captions.describe_examples(examples, checkpoint_count, axis) if examples else ""
    return SitePage(headline, [Panel("answers", answers, texts, "Text", True)])


# === Attention ===


def attention_page(runs: Runs, axis: StepAxis) -> SitePage:
    """Return the page of attention maps and of the patterns of heads, the clearest first."""
    frame = patterns.read_behaviour(runs[0])
    clearest_pattern, *clearest = patterns.clearest_head(frame)
    clearest_head = (clearest[0], clearest[1])
    layers, heads = _heads(runs[0])
    places = sorted(
        product(range(1, layers + 1), range(1, heads + 1)), key=lambda head_position: head_position != clearest_head
    )
    head_choices = {f"Layer {layer}, head {head}": {"layer": layer, "head": head} for layer, head in places}
    maps = [Panel("head", one_head, head_choices, "Head", True, True), Panel("all", all_heads, alone=True, each=True)]
    maps = maps if layers else []
    if frame.empty:
        return SitePage("", maps)
    measured_patterns, choices = set(frame["what"]), {}
    for name in sorted(patterns.PATTERNS, key=lambda name: name != clearest_pattern):
        if name not in measured_patterns:
            continue
        best, pattern = patterns.strongest(frame, (name,)), patterns.PATTERNS[name]
        head = best[1:] if best else clearest_head
        choices[pattern.label] = {"pattern": name, "change": pattern.changes[0], "selected_head": head}
    headline = head_behaviour.headline(runs[0], clearest_pattern, clearest_head, axis)
    panels = [
        Panel("heads", head_behaviour.over_steps, choices, "Pattern"),
        Panel("presence", head_behaviour.presence, choices, "Pattern"),
    ]
    return SitePage(headline, [*maps, *panels], METRIC)


def _heads(run: Run) -> tuple[int, int]:
    """Return the number of layers, and of heads per layer, with stored attention maps; (0, 0) if none are stored."""
    steps = results.steps_done(run, METRIC)
    return results.read_attention_step(run, min(steps))[0].shape[:2] if steps else (0, 0)


def all_heads(runs: Runs, axis: AxisChoice) -> Drawing:
    """Return the small attention maps of all heads over the steps. Raises ResultsError."""
    run = runs[0]
    steps, total = _steps(run, GRID_STEPS)
    shown_steps, weights, _ = results.read_attention_steps(run, steps)
    omission = _describe_steps(len(steps), total)
    block = -(-weights.shape[-1] // head_maps.GRID_SIZE)
    caption = attention.describe_all_heads(run, len(steps), block, False, False, omission)
    payload = head_maps.grid_payload(run.name, head_maps.grid(shown_steps, weights), unit=run.step_unit)
    note = attention.print_all_heads(attention.maps_note(run, False), "linear", False)
    return Drawing(HEAD_GRID, payload, head_maps.grid_name(run.name), "Attention of every head", caption, run, note)


def one_head(runs: Runs, axis: AxisChoice, layer: int, head: int) -> Drawing:
    """Return one head's maps, averaged over the sentences, with one byte per weight. Raises ResultsError."""
    run = runs[0]
    steps, total = _steps(run, HEAD_STEPS)
    maps = results.read_attention(run, layer, head, steps)
    source = results.read_sources(run).get(METRIC, {})
    history = averaged(run, layer, head, maps, source)
    caption = attention.describe_head(run, history, source.get("sentences_per_position", []), True, len(steps))
    precision_note = "Weights of at least a thousandth of the largest are kept within 1.4 %; smaller ones are 0."
    caption = replace(caption, details=sentences(caption.details, _describe_steps(len(steps), total), precision_note))
    payload = head_maps.history_payload(history, "linear", compact=True)
    return Drawing(HEAD_HISTORY, payload, history.name, history.label, caption, run, history.note)


def _steps(run: Run, max_count: int) -> tuple[list[int], int]:
    """Return at most `max_count` of the steps with maps, log-spaced, and the number of all steps with maps."""
    stored_steps = sorted(results.steps_done(run, METRIC))
    return log_spaced(stored_steps, max_count), len(stored_steps)


def _describe_steps(count: int, total: int) -> str:
    return "" if count == total else f"{count} of {total:,} steps have their maps here, spread over the logarithm."
