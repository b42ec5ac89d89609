"""run.json, the card of a run: written at its start, checked at every resume, rewritten if its plan is extended."""

import sys
from dataclasses import MISSING, asdict, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.errors import ConfigError
from embryo_core.types import Checkpoint, Run
from pretrain import continued
from pretrain.config import Config
from pretrain.corpus import Corpus
from pretrain.families import FAMILIES
from pretrain.state import latest_state, step_of

RATE_SETTINGS = ("steps", "constant_steps")  # may change as long as no update made so far depends on them
PLAN_SETTINGS = (*RATE_SETTINGS, "save_every", "save_per_doubling")


def new_card(folder: Path, config: Config, corpus: Corpus, start: Checkpoint | None = None) -> Run:
    """Return the card of a new run, without writing it; with `start`, of a run that continues from that checkpoint."""
    family = FAMILIES[config.family]
    first_step = start.step if start else 0
    planned_steps = tuple(first_step + step for step in config.checkpoint_steps())
    return Run(
        name=folder.resolve().name,
        path=folder.resolve(),
        family=config.family,
        objective=" + ".join(family.objectives(config).values()),
        config=asdict(config),
        tokenizer_sha256=runs.sha256(corpus.tokenizer_folder / "tokenizer.json"),
        corpus=corpus.fingerprint,
        planned_steps=(*continued.inherited_steps(config, start), *planned_steps) if start else planned_steps,
        code_version=version("embryo"),
        note=family.note(config),
        origin=continued.make_origin(start, folder.resolve(), config, corpus.fingerprint) if start else None,
    )


def write_card(run: Run) -> Run:
    """Write run.json of a new run, or check the one on disk and extend its plan; return the card on disk.

    The plan of checkpoints may always change; `steps` and `constant_steps` may change as long as no update made so far
    depends on them. Raises ConfigError for any other difference in settings, corpus, tokenizer or origin.
    """
    if not (run.path / "run.json").is_file():
        if run.path.is_file() or any(path.name != "run.json.tmp" for path in run.path.glob("*")):
            raise ConfigError(f"{run.path} exists and is not a run (it has no run.json); give another --run.")
        runs.write_run(run)
        return run
    stored = runs.read_run(run.path)
    run = replace(run, corpus=_with_words_of(stored, run.corpus))
    _refuse_other_start(stored, run)
    stored = replace(stored, config=_defaults(run.family) | stored.config)
    changed_settings = [name for name in run.config if stored.config.get(name) != run.config[name]]
    if not changed_settings:
        return stored
    _refuse_other_settings(stored, run, changed_settings)
    state = latest_state(run.path)
    step = step_of(state) if state else run.first_step
    if set(changed_settings) & set(RATE_SETTINGS):
        _refuse_other_past(stored, run, step)
    reached_steps = [planned_step for planned_step in stored.planned_steps if planned_step <= step]
    extended_run = replace(
        run,
        planned_steps=(*reached_steps, *(planned_step for planned_step in run.planned_steps if planned_step > step)),
    )
    runs.write_run(extended_run)
    return extended_run


def _with_words_of(stored: Run, corpus: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a text with the `counted_words` of a stored run, which are counted after its start."""
    return corpus | {name: stored.corpus[name] for name in ("counted_words",) if name in stored.corpus}


def settings_of(run: Run) -> Config:
    """Return the settings of a pretrained run. Raises ConfigError for an unknown family or invalid settings."""
    if run.family not in FAMILIES:
        raise ConfigError(
            f"Run '{run.name}' is of the family {run.family}, which was not pretrained here; "
            f"known: {', '.join(sorted(FAMILIES))}."
        )
    try:
        return FAMILIES[run.family].config_class(**run.config)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"run.json of run '{run.name}' has no settings of pretrain: {error}.") from None


def _defaults(family: str) -> dict[str, Any]:
    """Return the default settings of a family, for runs of earlier versions that lack some settings."""
    config_class = FAMILIES[family].config_class
    return {field.name: field.default for field in fields(config_class) if field.default is not MISSING}


def _refuse_other_start(stored: Run, run: Run) -> None:
    """Raise ConfigError if a run was started from another checkpoint, or with another family, corpus or tokenizer."""
    if stored.origin != run.origin:
        first_option = f"--init-from {stored.origin.run}@{stored.origin.step}" if stored.origin else "no --init-from"
        raise ConfigError(
            f"Run '{run.name}' was started with {first_option}; resume it with the same, or give another --run."
        )
    if stored.family != run.family:
        raise ConfigError(
            f"Run '{run.name}' is of the family {stored.family}, received {run.family}; "
            "resume it with the first command's preset, or give another --run."
        )
    if stored.corpus != run.corpus or stored.tokenizer_sha256 != run.tokenizer_sha256:
        raise ConfigError(
            f"Run '{run.name}' was started on another corpus or tokenizer than the one received; "
            "resume it with the first command's --corpus, or give another --run."
        )


def _refuse_other_settings(stored: Run, run: Run, changed_settings: list[str]) -> None:
    for name in changed_settings:
        if name not in PLAN_SETTINGS:
            raise ConfigError(
                f"Run '{run.name}' was started with {name}={stored.config.get(name)}, received {run.config[name]}; "
                f"resume it with the first command's settings, or give another --run."
            )


def _refuse_other_past(stored: Run, run: Run, step: int) -> None:
    """Raise ConfigError if an update that was already made would differ under the new plan."""
    if step - run.first_step <= min(_last_common_step(stored), _last_common_step(run)):
        return
    name = next(name for name in RATE_SETTINGS if stored.config[name] != run.config[name])
    raise ConfigError(
        f"Run '{run.name}' was started with {name}={stored.config[name]}, received {run.config[name]}; it is at step "
        f"{step}, where its updates already depend on that, so resume it with the first command's settings."
    )


def _last_common_step(run: Run) -> int:
    """Return how many updates do not depend on the planned end: those before the rate decays.

    It is 0 if the masked share changes up to the end. With `minutes` the rate follows the clock, and no update depends
    on the planned end.
    """
    if run.config.get("masked_share_end") is not None:
        return 0
    if run.config.get("minutes"):
        return sys.maxsize
    return max(run.config["warmup_steps"], run.config["constant_steps"])
