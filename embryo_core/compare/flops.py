"""How many floating-point operations a pretraining has cost up to a step, counted from its configuration."""

from dataclasses import dataclass

from msgspec import convert

from embryo_core import runs
from embryo_core.errors import RunError
from embryo_core.runs.architecture import layer_flops
from embryo_core.runs.schema import Settings
from embryo_core.types import Run, StepUnit

PASSES = 3  # a backward pass costs two forward passes


@dataclass(frozen=True)
class Sizes:
    """What the cost of an encoder depends on."""

    layers: int
    hidden: int
    inner: int
    embedding: int
    vocabulary: int

    def encoder(self, length: int) -> float:
        """Of one sequence through all layers, and through the projection of its embeddings where there is one."""
        projection = 2 * length * self.embedding * self.hidden if self.embedding != self.hidden else 0
        return self.layers * layer_flops(length, self.hidden, self.inner) + projection

    def masked_words(self, positions: float) -> float:
        """Of the masked-word head at so many positions: its dense layer, and the product with all embeddings."""
        return 2 * positions * self.embedding * (self.hidden + self.vocabulary)


def training_flops(run: Run, step: int) -> float | None:
    """FLOPs of a run up to a step, those of the run that it goes on from included; None where they cannot be counted.

    A multiplication with an addition counts as two. Forward, a layer costs `layer_flops`; backward, twice that. Layers
    that share their weights cost as much as others. docs/metrics.md has the whole count.
    """
    settings = convert(run.config, Settings)
    needed = (settings.num_hidden_layers, settings.hidden_size, settings.intermediate_size, settings.vocab_size)
    if run.step_unit != StepUnit.UPDATES or not all((*needed, settings.batch_size, settings.sequence_length)):
        return None
    before, first = 0.0, 0
    if run.origin:
        first = run.origin.step
        before = _of_origin(run, min(step, first))
        if before is None:
            return None
    updates = max(0, step - first)
    first_phase = min(updates, settings.short_steps)
    short = first_phase - (first_phase // settings.long_every if settings.long_every else 0)
    costs = short * settings.short_batch_size * _sequence(run, settings, settings.short_sequence_length)
    costs += (updates - short) * settings.batch_size * _sequence(run, settings, settings.sequence_length)
    return before + costs


def kinks(run: Run) -> tuple[int, ...]:
    """Steps at which an update begins to cost another number of FLOPs."""
    settings, first = convert(run.config, Settings), run.origin.step if run.origin else 0
    inside = 0 < settings.short_steps < settings.steps
    return (first + settings.short_steps,) if inside else ()


def _of_origin(run: Run, step: int) -> float | None:
    try:
        first = runs.open_run(run.origin.run)
    except RunError:
        return None
    ascends = first.origin is not None and first.origin.step >= run.origin.step  # runs that name each other
    return None if ascends else training_flops(first, step)


def _sequence(run: Run, settings: Settings, length: int) -> float:
    """Forward and backward, on one sequence."""
    hidden, layers, vocabulary = settings.hidden_size, settings.num_hidden_layers, settings.vocab_size
    embedding = settings.embedding_size or hidden
    model = Sizes(layers, hidden, settings.intermediate_size, embedding, vocabulary)
    masked_share = max(settings.masked_share, settings.masked_share_end or 0.0)
    masked = max(1, round(masked_share * length))  # the widest batch is computed
    share = run.config.get("generator_size")
    if not isinstance(share, int | float):
        return PASSES * (model.encoder(length) + model.masked_words(masked))
    small = round(hidden * share)
    generator = Sizes(layers, small, 4 * small, embedding, vocabulary)
    discriminator = model.encoder(length) + 2 * length * hidden * (hidden + 1)
    return PASSES * (discriminator + generator.encoder(length) + generator.masked_words(masked))
