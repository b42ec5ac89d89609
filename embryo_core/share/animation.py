"""The development of one head as an animation: its maps over the steps, as a GIF or as a page that plays by itself."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import AttentionHistory
from embryo_core.types import Run

METRIC = "attention"
SUFFIXES = (".gif", ".html")
SCALES = ("linear", "log")
DECADES = 3  # the logarithmic colours reach down to 10**-DECADES of the largest weight, as on the Attention page
VIRIDIS = np.array(  # evenly spaced, [10, 3]
    [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142]]
    + [[31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]]
)


@dataclass(frozen=True, eq=False)
class Film:
    """One head's maps, weights [S, L, L] at steps [S]; `note` says on what data, with what n; tokens name positions."""

    run: str
    layer: int
    head: int
    note: str
    steps: np.ndarray
    weights: np.ndarray
    tokens: tuple[str, ...] = ()  # the L pieces of one sentence; none for averaged maps

    @property
    def title(self) -> str:
        """Whose maps these are."""
        return f"{self.run}, layer {self.layer}, head {self.head}"


def head_film(run: Run, layer: int, head: int, history: AttentionHistory) -> Film:
    """The film of a head's averaged maps, from its stored history."""
    averaged = f"averaged over {history.sentences:,} sentences"
    note = results.read_sources(run).get(METRIC, {}).get("note", averaged)
    return Film(run.name, layer, head, f"Attention weights, {note}", history.steps, history.weights)


def read_film(run: Run, layer: int, head: int) -> Film:
    """The film of a head, counted from 1, out of a run's results. Raises ResultsError where there are no such maps."""
    steps = results.done(run, METRIC)
    if not steps:
        raise ResultsError(
            f"Run '{run.name}' has no attention maps yet; make them with: "
            f"python -m embryo_core evaluate {run.name} --metrics {METRIC}"
        )
    layers, heads = results.read_attention_step(run, min(steps))[0].shape[:2]
    if not (1 <= layer <= layers and 1 <= head <= heads):
        raise ResultsError(
            f"Run '{run.name}' has no layer {layer}, head {head}: its layers are 1 to {layers}, its heads 1 to {heads}."
        )
    return head_film(run, layer, head, results.read_attention(run, layer, head))


def write_film(film: Film, path: Path, scale: str = "linear") -> None:
    """Write a film as GIF or HTML, as the suffix says. Raises ResultsError for another suffix or an unwritable path."""
    check_suffix(path)
    if path.suffix.lower() == ".gif":
        from embryo_core.share.gif import gif_bytes  # Pillow, for this alone

        content = gif_bytes(film, scale)
    else:
        from embryo_core.share.page import html_page

        content = html_page(film, scale).encode()
    try:
        path.write_bytes(content)
    except OSError as reason:
        raise ResultsError(f"{path} cannot be written ({reason.strerror}); give another path with -o.") from None


def check_suffix(path: Path) -> None:
    """Raise ResultsError unless films can be written to files of this name."""
    if path.suffix.lower() not in SUFFIXES:
        raise ResultsError(f"'{path}' ends in none of {', '.join(SUFFIXES)}; an animation is written as one of these.")


def places(weights: np.ndarray, scale: str) -> np.ndarray:
    """Places in [0, 1] on the colour scale of weights [S, L, L]: shares of the largest of all, or their logarithm."""
    shares = weights / (float(weights.max()) or 1.0)
    if scale == "linear":
        return shares
    return np.clip(1 + np.log10(np.maximum(shares, 1e-12)) / DECADES, 0, 1)


def legend(film: Film, scale: str) -> list[str]:
    """The weights at the left end, the middle and the right end of the colour scale."""
    largest = float(film.weights.max()) or 1.0
    if scale == "linear":
        return ["0", f"{largest / 2:.2g}", f"{largest:.2g}"]
    return [f"≤ {largest / 10**DECADES:.2g}", f"{largest / 10 ** (DECADES / 2):.2g}", f"{largest:.2g}"]
