"""What changed during a pretraining: its text, the length of its sequences, the phase of its learning rate."""

from msgspec import convert

from embryo_core.runs.schema import Corpus, Settings
from embryo_core.types import Change, Run


def changes(run: Run) -> tuple[Change, ...]:
    """The changes of a run in the order of steps, those of the run that it goes on from included."""
    settings = convert(run.config, Settings)
    first, earlier = (run.origin.step, run.origin.changes) if run.origin else (0, ())
    own = []
    if run.origin and all(change.step != first for change in earlier):  # else its beginning is told there
        own.append(Change(first, f"corpus: {_sources(run)}"))
    if 0 < settings.short_steps < settings.steps:
        own.append(Change(first + settings.short_steps, f"sequences of {settings.sequence_length} tokens"))
    if 0 < settings.constant_steps < settings.steps:
        own.append(Change(first + settings.constant_steps, "learning rate falls"))
    return (*earlier, *sorted(own, key=lambda change: change.step))


def _sources(run: Run) -> str:
    """The first source of a run's text by name, and how many others there are; no more characters than a label has."""
    sources = convert(run.corpus, Corpus).sources
    names = [source if isinstance(source, str) else source.name for source in sources] or ["other text"]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return "".join(filter(str.isprintable, names[0]))[:60] + more
