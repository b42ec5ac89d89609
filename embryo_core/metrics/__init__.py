"""The metrics. To add one, write metrics/foo.py and add Foo() to METRICS; nothing else changes."""

from collections.abc import Iterable

from embryo_core.errors import UnknownMetric, unknown
from embryo_core.metric import Metric
from embryo_core.metrics.attention import Attention
from embryo_core.metrics.edge_probing import EdgeProbing
from embryo_core.metrics.geometry import Geometry
from embryo_core.metrics.head_behaviour import HeadBehaviour
from embryo_core.metrics.lama_variants import LamaVariants
from embryo_core.metrics.minimal_pairs import MinimalPairs
from embryo_core.metrics.ngram_divergence import NgramDivergence
from embryo_core.metrics.positions import Positions
from embryo_core.metrics.replaced_token_accuracy import ReplacedTokenAccuracy
from embryo_core.metrics.word_prediction import MaskPrediction, NextWordPrediction, TokenReconstruction
from embryo_core.metrics.word_surprisal import WordSurprisal
from embryo_core.metrics.world_knowledge import WorldKnowledge

__all__ = ["METRICS", "get_metrics"]

METRICS: tuple[Metric, ...] = (
    TokenReconstruction(),
    MaskPrediction(),
    NextWordPrediction(),
    ReplacedTokenAccuracy(),
    WorldKnowledge(),
    LamaVariants(),
    MinimalPairs(),
    WordSurprisal(),
    Attention(),
    HeadBehaviour(),
    EdgeProbing(),
    NgramDivergence(),
    Positions(),
    Geometry(),
)


def get_metrics(names: Iterable[str]) -> list[Metric]:
    """Return the named metrics in the order of METRICS. Raises UnknownMetric, which suggests the nearest known name."""
    known_names = [metric.name for metric in METRICS]
    requested = set(names)
    for name in requested.difference(known_names):
        raise UnknownMetric(unknown("metric", name, known_names))
    return [metric for metric in METRICS if metric.name in requested]
