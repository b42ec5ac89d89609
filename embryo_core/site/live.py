"""Live questions in a static site: a run's ONNX graph and the weights of some checkpoints, to run in the browser.

live_model.js loads them with the first question. Tokenizer and displayed pieces are the same as in the dashboard.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from embryo_core import runs as run_files
from embryo_core.curves.step_scales import SCALES, log_spaced
from embryo_core.engine.capabilities import heads
from embryo_core.errors import EmbryoError, MissingCapability, SiteError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.query import ANSWER_COLOURS
from embryo_core.query import CONTINUATION_LENGTH, EXAMPLE, MAX_CHARACTERS, MAX_MASKS, START, end_tokens
from embryo_core.site.packages import LIVE, add_packages
from embryo_core.site.parts import without_template
from embryo_core.tokenizers.checks import check_vocabulary
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Checkpoint, Run

RUNTIME_BYTES = 14_400_000  # bytes of the third-party JavaScript
MAX_JOINT_MASKS = 4  # masks filled jointly; each adds up to BEAM_WIDTH passes per checkpoint
GRAPH_FILE, TOKENIZER_FILE, ABOUT_FILE = "graph.onnx", "tokenizer.json", "about.json"


def write_live(runs: Sequence[Run], folder: Path, count: int) -> dict[str, dict[str, str]]:
    """Write the files with which a browser queries at most `count` checkpoints of each run.

    Returns, by the run's name, the "folder" of its files in the site, or "why" it cannot be queried. Raises SiteError
    if no run can be queried, or if third-party JavaScript cannot be fetched.
    """
    graphs: dict[str, dict[str, str]] = {}
    for i, run in enumerate(runs, 1):
        try:
            _write_run(run, folder / "live" / str(i), count)
            graphs[run.name] = {"folder": f"live/{i}"}
        except EmbryoError as reason:
            graphs[run.name] = {"why": str(reason)}
    if not any("folder" in entry for entry in graphs.values()):
        raise SiteError(" ".join(entry["why"] for entry in graphs.values()))
    add_packages(LIVE, folder / "assets" / "live")
    return graphs


def _write_run(run: Run, folder: Path, count: int) -> None:
    """Write the graph, weights, tokenizer and description of a run. Raises EmbryoError."""
    loadable = {checkpoint.step: checkpoint for checkpoint in run_files.loadable_checkpoints(run)}
    steps = log_spaced([*loadable], count) if count > 1 else [*loadable][-1:]
    tokenizer = load_tokenizer(run)
    if tokenizer.new_words:
        raise MissingCapability(
            f"Run '{run.name}' cannot be asked live: a browser would find the words that were added to its vocabulary "
            "inside longer words too."
        )
    graphs, omissions = {}, []
    for step in steps:
        try:
            graphs[step] = _graph(loadable[step], tokenizer.vocabulary_size)
        except EmbryoError as reason:
            omissions.append(str(reason))
    if not graphs:
        raise SiteError(omissions[0])
    graph, _ = graphs[max(graphs)]
    live_steps = [step for step, (graph_of_step, _) in graphs.items() if graph_of_step == graph]
    omissions += [
        f"Step {step} has tensors of other shapes than the last." for step in graphs if step not in live_steps
    ]
    folder.mkdir(parents=True)
    (folder / GRAPH_FILE).write_bytes(graph)
    for step in live_steps:
        shutil.copyfile(graphs[step][1], folder / f"step{step}.safetensors")
    shutil.copyfile(run.tokenizer / TOKENIZER_FILE, folder / TOKENIZER_FILE)
    download_bytes = sum(path.stat().st_size for path in folder.iterdir()) + RUNTIME_BYTES
    description = _about(run, loadable[live_steps[-1]], tokenizer, live_steps)
    description |= {"left_out": omissions, "megabytes": round(download_bytes / 1e6)}
    (folder / ABOUT_FILE).write_text(json.dumps(description), encoding="utf-8")


def _masked_word_model(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint of the model that predicts words: an ELECTRA's generator, or else the checkpoint itself."""
    return run_files.generator(checkpoint) or checkpoint


def _graph(checkpoint: Checkpoint, pieces: int) -> tuple[bytes, Path]:
    """Return the ONNX graph of a checkpoint, and the verified file of its weights. Raises EmbryoError."""
    from embryo_core.engine.onnx_graph import network_graph  # imports torch

    model = _masked_word_model(checkpoint)
    if not heads(model) & {"masked_words", "next_words"}:
        raise MissingCapability(f"Run '{checkpoint.run.name}' cannot be asked live: its models predict no words.")
    run_files.verify(model)
    check_vocabulary(model, pieces)
    files = run_files.weights_files(model)
    if len(files) > 1 or run_files.is_pickled(*files[0]):
        raise MissingCapability(
            f"Run '{checkpoint.run.name}' cannot be asked live: its weights are not in one safetensors file."
        )
    try:
        return network_graph(model, run_files.read_header(*files[0])[0]), files[0][0]
    except MissingCapability as reason:
        raise MissingCapability(f"Run '{checkpoint.run.name}' cannot be asked live: {reason}.") from None


def _about(run: Run, checkpoint: Checkpoint, tokenizer: Tokenizer, steps: Sequence[int]) -> dict[str, Any]:
    """Return the description of a run that live_model.js reads: sizes, tokens, limits, colours and layouts."""
    model = _masked_word_model(checkpoint)
    architecture, config = (
        run_files.read_config(checkpoint_read, run_files.Architecture) for checkpoint_read in (model, checkpoint)
    )
    fills_masks = "masked_words" in heads(model)
    special_ids = (tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id)
    return {
        "steps": steps,
        "fills": fills_masks,
        "example": EXAMPLE if fills_masks else START,
        "layers": architecture.num_hidden_layers,
        "positions": min(architecture.max_position_embeddings, config.max_position_embeddings),
        "pieces": tokenizer.readable(range(tokenizer.vocabulary_size)),
        "begin": tokenizer.begin.tolist(),
        "end": tokenizer.end.tolist() if fills_masks else [],
        "mask": tokenizer.mask,
        "mask_id": tokenizer.mask_id,
        "special": [checkpoint_read for checkpoint_read in special_ids if checkpoint_read is not None],
        "unknown": tokenizer.unk_id,
        "blank": tokenizer.blank,
        "word_start": tokenizer.word_start,
        "ends": sorted(end_tokens(checkpoint)),
        "continued": CONTINUATION_LENGTH,
        "most_masks": MAX_JOINT_MASKS,
        "most_pieces": MAX_MASKS,
        "most_characters": MAX_CHARACTERS,
        "colours": ANSWER_COLOURS,
        "tracked": style.PINK,
        "layouts": {scale: _layout(run, scale, steps) for scale in SCALES},
    }


def _layout(run: Run, scale: Any, steps: Sequence[int]) -> dict[str, Any]:
    """Return the layout of a figure of probabilities over these steps, without plotly's template."""
    figure = AxisChoice(scale).for_run(run).draw(go.Figure(), steps)
    style.set_axes(figure, "y", rangemode="tozero", tickformat="~%")
    return without_template(style.finish(figure, "probability", height=400).to_plotly_json())["layout"]
