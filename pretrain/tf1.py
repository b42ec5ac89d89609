"""Import checkpoints of the families' original code (TensorFlow 1) as a run: python -m pretrain import PATH.

Sizes are inferred from the variables; other settings are read from the configuration next to them
(FAMILY_config.json). The numbers of sequences and tokens seen are unknown.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import keras
import numpy as np

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, ConfigError, first_line
from embryo_core.types import Run
from pretrain.config import Config
from pretrain.export import assign, write_checkpoint
from pretrain.families import FAMILIES
from pretrain.family import Family
from pretrain.masking import Batch
from pretrain.model import PretrainingModel
from pretrain.originals import OriginalFormat, find_vocabulary, tensor_of, write_tokenizer
from pretrain.state import Progress

Tensors = dict[str, dict[str, np.ndarray]]  # folder of the checkpoint -> name -> tensor
GELU = "gelu"  # hidden_act of every published model; a family's presets choose the formula


def import_series(path: Path, folder: Path, *, vocabulary: Path | None = None, cased: bool = False) -> Run:
    """Write the checkpoints at `path`, model.ckpt-N or a folder of them, as a run; existing steps are unchanged.

    Raises ConfigError, BrokenCheckpoint; checkpoints imported before the error are kept.
    """
    series = find_series(path)
    run: Run | None = None
    for step, prefix in sorted(series.items()):
        if run and any(checkpoint.step == step for checkpoint in runs.checkpoints(run)):
            continue
        family, tensors = read_tensors(prefix)
        config = configuration(family, tensors, prefix)
        model = model_of(config, tensors, prefix)
        if run is None:
            run = _start_run(folder, config, tuple(series), find_vocabulary(prefix.parent, vocabulary), cased)
            if any(checkpoint.step == step for checkpoint in runs.checkpoints(run)):
                continue
        write_checkpoint(model, config, run.path, Progress(step, None, None))
        print(f"step {step}: {prefix}")
    assert run is not None  # a series has at least one checkpoint
    return run


# === Files ===


def find_series(path: Path) -> dict[int, Path]:
    """Return the path prefixes of one checkpoint, or of all in a folder, by step. Raises ConfigError."""
    if path.is_dir():
        prefixes = [file.with_suffix("") for file in path.glob("*.index")]
        if not prefixes:
            raise ConfigError(f"{path} has no checkpoint of TensorFlow 1: it has no file model.ckpt-STEP.index.")
    else:
        prefixes = [path.with_suffix("") if path.suffix in (".index", ".meta") else path]
    series: dict[int, Path] = {}
    for prefix in sorted(prefixes):
        if (earlier_prefix := series.setdefault(_step(prefix), prefix)) != prefix:
            raise ConfigError(f"{earlier_prefix} and {prefix} have the same step; import one of them by its name.")
    return series


def _step(prefix: Path) -> int:
    """Return the step in a checkpoint's name, else in its variable global_step. Raises ConfigError."""
    if match := re.search(r"-(\d{1,18})$", prefix.name):
        return int(match[1])
    reader = open_checkpoint(prefix)
    if reader.has_tensor("global_step"):
        return int(reader.get_tensor("global_step"))
    raise ConfigError(f"{prefix} has no step, in its name or as a variable; rename its files to {prefix.name}-STEP.*")


def open_checkpoint(prefix: Path) -> Any:
    """Return TensorFlow's reader of a checkpoint. Raises BrokenCheckpoint."""
    import tensorflow as tf

    if not Path(f"{prefix}.index").is_file():
        raise BrokenCheckpoint(
            f"{prefix} is not a folder, and {prefix}.index does not exist; name one, or .../model.ckpt-N."
        )
    with _reporting_damage(prefix):
        return tf.train.load_checkpoint(str(prefix))


def read_tensors(prefix: Path) -> tuple[Family, Tensors]:
    """Return a checkpoint's family, and its tensors by name in transformers. Raises BrokenCheckpoint, ConfigError."""
    reader = open_checkpoint(prefix)
    variables = reader.get_variable_to_shape_map()  # in memory since opening, so it cannot fail
    family = _family_of(variables, prefix)
    tensors_of_variables = {
        name: tensor for name in sorted(variables) if (tensor := tensor_of(name, _originals()[family], prefix))
    }
    tensors: Tensors = {}
    for name, tensor in tensors_of_variables.items():
        with _reporting_damage(prefix):
            array = reader.get_tensor(name)
        if array.dtype == object:
            raise BrokenCheckpoint(f"{prefix} has text in the variable {name}; it holds another model.")
        tensors.setdefault(tensor.folder, {})[tensor.name] = array.T if tensor.transposed else array
    if "generator" in tensors:  # the generator shares the discriminator's embeddings
        shared_embeddings = {
            name: array for name, array in tensors[""].items() if name.startswith(f"{family.name}.embeddings.")
        }
        tensors["generator"] |= shared_embeddings
    return family, tensors


def _family_of(variables: Iterable[str], prefix: Path) -> Family:
    """Return the family whose original code wrote these variables. Raises ConfigError if it is none of them."""
    for family, original in _originals().items():
        if any(original.mark in name for name in variables):
            return family
    *other_names, last_name = (family.name.upper() for family in _originals())
    raise ConfigError(
        f"{prefix} holds no {', '.join(other_names)} or {last_name} as their original code writes them: its variables "
        "are "
        f"{', '.join(sorted(variables)[:3]) or 'none'}, ..."
    )


@contextmanager
def _reporting_damage(prefix: Path) -> Iterator[None]:
    """Convert errors of TensorFlow's reader for a damaged file to BrokenCheckpoint."""
    import tensorflow as tf

    try:
        yield
    except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as reason:  # IndexError: a file is too short
        description = first_line(reason)[:200]
        raise BrokenCheckpoint(
            f"{prefix} cannot be read ({description}); copy its .index and .data files again."
        ) from None


def _originals() -> dict[Family, OriginalFormat]:
    """Return the `OriginalFormat` of each family whose checkpoints can be imported."""
    return {family: family.original for family in FAMILIES.values() if family.original}


# === Model ===


def configuration(family: Family, tensors: Tensors, prefix: Path) -> Config:
    """Return settings for a model with these tensors; settings of training are a preset's. Raises ConfigError."""
    original, variables = _originals()[family], tensors[""]
    depth_setting, pattern = original.layers

    def size(name: str, axis: int = 0, folder: str = "") -> int:
        for match, array in tensors[folder].items():
            if match.endswith(name) and array.ndim > axis:
                return array.shape[axis]
        raise ConfigError(f"{prefix} has no {axis + 1}-dimensional {name}; it is not a complete {family.name}.")

    model_sizes: dict[str, Any] = {
        "vocab_size": size("word_embeddings.weight"),
        "max_position_embeddings": size("position_embeddings.weight"),
        "hidden_size": size("query.weight"),
        "intermediate_size": size(f"{original.inner}.weight"),
        depth_setting: len({match[1] for name in variables if (match := re.search(pattern, name))}),
        "embedding_size": size("word_embeddings.weight", 1),
    }
    model_sizes |= _from_configuration(family, prefix, model_sizes)
    if original.head_size:
        model_sizes.setdefault("num_attention_heads", max(1, model_sizes["hidden_size"] // original.head_size))
    if "generator" in tensors:
        model_sizes["generator_size"] = size("query.weight", folder="generator") / model_sizes["hidden_size"]
    preset = next(iter(family.presets.values()))
    settings = {field.name for field in fields(preset)}
    changes = {name: match for name, match in model_sizes.items() if name in settings}
    changes |= {
        "sequence_length": model_sizes["max_position_embeddings"],
        "short_steps": 0,
        "checkpoint_dtype": "float32",
    }
    return replace(preset, **changes)


def _from_configuration(family: Family, prefix: Path, model_sizes: dict[str, int]) -> dict[str, Any]:
    """Read the settings that variables do not determine from a file next to the checkpoint, or in the folder above.

    Raises ConfigError if the file is missing and required, if its sizes differ from the variables', or for an
    unsupported activation.
    """
    original = _originals()[family]
    shares = ["hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"]
    file = f"{family.name}_config.json"
    for path in (prefix.parent / file, prefix.parents[1] / file):
        if not path.is_file():
            continue
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            settings: dict[str, Any] = {name: int(content[name]) for name in original.only_configured}
            settings |= {name: float(content[name]) for name in shares if name in content}
        except (ValueError, KeyError, TypeError) as reason:
            raise ConfigError(f"{path} is not the configuration of an original {family.name} ({reason!r}).") from None
        for name, size in model_sizes.items():
            if content.get(name, size) != size:
                difference = f"{path} has {name} {content[name]}, and {prefix} has {size}"
                raise ConfigError(f"{difference}; put the configuration of this model next to it.")
        if content.get("hidden_act", GELU) != GELU:
            raise ConfigError(
                f"{path} has hidden_act {content['hidden_act']!r}; only models with '{GELU}' are imported."
            )
        return settings
    if original.head_size:
        return {}
    raise ConfigError(f"{prefix.parent / file}, which has the number of heads, does not exist; put it there.")


def model_of(config: Config, tensors: Tensors, prefix: Path) -> PretrainingModel:
    """Return the model of a configuration with these weights. Raises BrokenCheckpoint if they do not fit it."""
    keras.config.set_dtype_policy("float32")
    family = FAMILIES[config.family]
    model = family.model(config)
    shapes = {field.name: np.zeros((1, 4), np.int32) for field in fields(Batch)}
    model(Batch(**shapes).inputs())
    inner = {name: modules for name, (modules, _) in family.inner_checkpoints(config, model).items()}
    for name, modules in ({"": family.modules(model)} | inner).items():
        if name not in tensors:
            raise BrokenCheckpoint(f"{prefix} has no {name}, which the original {family.name} is trained with.")
        assign(modules, _identity(family, config) | tensors[name], prefix)
    return model


def _identity(family: Family, config: Config) -> dict[str, np.ndarray]:
    """Return an identity projection if embeddings are as wide as states: the original then has no projection."""
    name, width = _originals()[family].projection, config.hidden_size
    if not name or getattr(config, "embedding_size", width) != width:
        return {}
    return {f"{name}.weight": np.eye(width), f"{name}.bias": np.zeros(width)}


# === Run ===


def _start_run(folder: Path, config: Config, steps: tuple[int, ...], vocabulary: Path, cased: bool) -> Run:
    """Write run.json, and the tokenizer of a new run; an existing run must have the same model and vocabulary."""
    existing = runs.read_run(folder) if (folder / "run.json").is_file() else None
    if not existing and folder.exists() and any(path.name != "tokenizer" for path in folder.iterdir()):
        raise ConfigError(f"{folder} exists and is not a run (it has no run.json); give another --run.")
    tokenizer_sha256 = _write_vocabulary(vocabulary, folder, config, cased, existing)
    family = FAMILIES[config.family]
    names = {field.name for field in fields(config)} & family.huggingface_config(config).keys()
    run = Run(
        name=folder.resolve().name,
        path=folder.resolve(),
        family=config.family,
        objective=" + ".join(family.objectives(config).values()),
        config={name: getattr(config, name) for name in sorted(names)},
        tokenizer_sha256=tokenizer_sha256,
        corpus={},
        planned_steps=tuple(sorted({*steps, *(existing.planned_steps if existing else ())})),
        code_version=version("embryo"),
    )
    if existing and (existing.config, existing.tokenizer_sha256) != (run.config, run.tokenizer_sha256):
        raise ConfigError(
            f"Run '{run.name}' has another model or vocabulary than {vocabulary.parent}; give another --run."
        )
    runs.write_run(run)
    return run


def _write_vocabulary(vocabulary: Path, folder: Path, config: Config, cased: bool, existing: Run | None) -> str:
    """Write the tokenizer of a new run, or compare it with an existing run's; return its SHA-256."""
    with TemporaryDirectory() as elsewhere:
        target = Path(elsewhere) / "tokenizer" if existing else folder / "tokenizer"
        pieces = write_tokenizer(vocabulary, target, cased)
        if pieces > config.vocab_size:
            raise ConfigError(f"{vocabulary} has {pieces:,} pieces, and the model {config.vocab_size:,}; name its own.")
        return runs.sha256(target / "tokenizer.json")
