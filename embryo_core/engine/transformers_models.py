"""Load the models of transformers from tensors that were checked, and report its failures as errors of a checkpoint."""

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from threading import Lock
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from embryo_core import runs
from embryo_core.engine.capabilities import heads
from embryo_core.engine.tensor_files import broken_error, read_finite
from embryo_core.errors import ConfigError, first_line
from embryo_core.types import Checkpoint

NOT_OF_FAMILIES = {  # settings that all families share and that are ignored: code, other formats, labels, outputs
    *(field.name for field in fields(PreTrainedConfig)),
    *("auto_map", "num_labels", "output_attentions", "quantization_config", "torch_dtype", "use_cache"),
}
COUNT_PATTERN = re.compile(r"^(num|n)_|_(layers?|groups?|heads|blocks?|experts)$")  # names of settings that count parts
SIZE_SETTINGS = ("n_ctx", "n_embd", "n_inner", "n_positions")  # sizes, which the number of parameters bounds
MAX_PARTS = 1024  # parts of one kind in a model, such as layers
FORCED_SETTINGS = {  # settings of a family that override config.json, by model_type
    # The first short text would permanently switch sparse attention to this type, even for passes in progress.
    "big_bird": {"attention_type": "original_full"},
}
UNUSED_NAMES = ("pooler", "position_ids")  # parts of the names of tensors that no pass needs
POSITION_TABLES = ("position_embeddings", "wpe", "decoder.embed_positions")  # suffixes of the names of modules
LAYER_PATTERN = re.compile(r"(^|\.)\d+\.")  # part of the name of a layer's tensor
LOADERS: dict[str, Any] = {  # classes by the capability of the head
    "replaced_tokens": AutoModelForPreTraining,
    "masked_words": AutoModelForMaskedLM,
    "next_words": AutoModelForCausalLM,
}
# transformers patches its classes while it builds a model; a model built by another thread would lack weights.
_BUILD_LOCK = Lock()
FAILURES = (  # errors of transformers for unsuitable files or inputs
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,
    ImportError,
    AssertionError,
    StrictDataclassError,  # a value of the wrong type in config.json
)


def build_model(checkpoint: Checkpoint, architecture: runs.Architecture) -> Any:
    """Load the model with a class of transformers; all of its weights must be present."""
    loader: Any = next((LOADERS[head] for head in LOADERS if head in heads(checkpoint)), AutoModel)
    with reporting_failures(checkpoint, "read"):
        config = read_configuration(checkpoint)
        with _BUILD_LOCK, torch.device("meta"):  # takes no memory
            parameters = sum(parameter.numel() for parameter in loader.from_config(config).parameters())
    if parameters > architecture.max_parameters:
        raise broken_error(checkpoint, f"config.json makes a model of {parameters:,} parameters")
    check_memory(checkpoint, parameters)
    tensors = read_finite(checkpoint)
    if any(name.startswith("lm_predictions.") for name in tensors):
        config.legacy = False  # DeBERTa's original names of the head
    with reporting_failures(checkpoint, "read"), _BUILD_LOCK:
        model, report = loader._model_mapping[type(config)].from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            attn_implementation="eager",  # other implementations return no attention weights
            dtype=torch.float32,
            output_loading_info=True,
        )
    if missing := sorted(name for name in report["missing_keys"] if "pooler" not in name):
        raise broken_error(checkpoint, f"{runs.weights_file(checkpoint).name} lacks {', '.join(missing[:5])}")
    check_all_read(checkpoint, model, tensors, report["unexpected_keys"])
    return model


def check_memory(checkpoint: Checkpoint, parameters: int) -> None:
    """Raise ConfigError if this machine has less memory than the parameters need in float32.

    The system would end the process while it loads the model. Windows does not report its memory through `os.sysconf`.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    if (needed := 4 * parameters) > memory:
        raise ConfigError(
            f"{checkpoint.path} has {parameters / 1e9:.3g} billion parameters, which need {needed / 1e9:.3g} GB of "
            f"memory; this machine has {memory / 1e9:.3g} GB."
        )


def check_all_read(
    checkpoint: Checkpoint, model: PreTrainedModel, stored: Iterable[str], unexpected: Iterable[str]
) -> None:
    """Raise BrokenCheckpoint if a stored tensor of the base model is unused, since its outputs would be wrong."""
    encoder = f"{model.base_model_prefix}."
    has_prefix = any(name.startswith(encoder) for name in stored)
    unread = sorted(
        name
        for name in unexpected
        if (name.startswith(encoder) if has_prefix else LAYER_PATTERN.search(name))
        and not any(fragment in name for fragment in UNUSED_NAMES)
    )
    if unread:
        problem = f"{runs.weights_file(checkpoint).name} has {', '.join(unread[:3])}"
        raise broken_error(checkpoint, f"{problem}, which transformers does not read in a {type(model).__name__}")


def read_configuration(checkpoint: Checkpoint) -> PreTrainedConfig:
    """Return the configuration with only the settings of its model_type, and with bounded counts.

    Raises BrokenCheckpoint for an implausible number of parts: transformers would allocate a list of them before the
    parameters can be counted.
    """
    content = runs.read_config(checkpoint, runs.Configuration)
    family = content.pop("model_type")
    settings = {name: setting for name, setting in content.items() if name[:1] != "_" and name not in NOT_OF_FAMILIES}
    for name, value in settings.items():
        if COUNT_PATTERN.search(name) and name not in SIZE_SETTINGS and isinstance(value, int) and value > MAX_PARTS:
            raise broken_error(checkpoint, f"config.json has {name} {value:,} (the maximum is {MAX_PARTS:,})")
    return AutoConfig.for_model(family, **settings | FORCED_SETTINGS.get(family, {}), use_cache=False)


def max_sequence_length(checkpoint: Checkpoint) -> int:
    """Return the largest number of pieces of a sequence, with special tokens. Raises BrokenCheckpoint."""
    max_positions = runs.read_config(checkpoint, runs.Architecture).max_position_embeddings
    with reporting_failures(checkpoint, "read"), _BUILD_LOCK, torch.device("meta"):  # takes no memory
        return count_positions(AutoModel.from_config(read_configuration(checkpoint)), max_positions)


@contextmanager
def reporting_failures(checkpoint: Checkpoint, action: str) -> Iterator[None]:
    """Raise BrokenCheckpoint if transformers fails in the block, ConfigError if the device runs out of memory."""
    try:
        yield
    except torch.OutOfMemoryError as reason:
        raise ConfigError(
            f"{checkpoint.path} does not fit into the memory of its device ({first_line(reason)}); use --device cpu."
        ) from None
    except FAILURES as reason:
        why = first_line(reason.__cause__ or reason)
        raise broken_error(checkpoint, f"transformers cannot {action} it ({why})") from None


# === Positions ===


def count_positions(base: PreTrainedModel, max_positions: int) -> int:
    """Return the maximum length of a sequence, without the rows of position embeddings up to the padding row."""
    positions = position_embeddings(base)
    if positions is None or not first_position(positions):
        return max_positions
    return len(positions.weight) - first_position(positions)


def position_embeddings(base: PreTrainedModel) -> Any:
    """Return the table of position embeddings; some families have a special class for it."""
    modules = (module for name, module in base.named_modules() if name.endswith(POSITION_TABLES))
    return next((module for module in modules if hasattr(module, "weight") and hasattr(module, "padding_idx")), None)


def first_position(positions: Any) -> int:
    """Return the row of the first position; earlier rows are padding."""
    if positions.padding_idx is not None:
        return positions.padding_idx + 1
    return getattr(positions, "offset", 0)
