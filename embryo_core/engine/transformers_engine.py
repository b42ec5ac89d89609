"""The engine that runs models with transformers: all supported encoders and decoders, on any device."""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from torch.nn import ModuleList
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions
from transformers.utils import logging

from embryo_core import runs
from embryo_core.engine.capabilities import heads
from embryo_core.engine.device import CPU, Device, use_one_core_per_pass
from embryo_core.engine.tensor_files import broken, read_finite
from embryo_core.errors import ConfigError, first_line
from embryo_core.tokenizers.checks import check_vocabulary
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
PROBE_LENGTH = 8  # pieces of the text that tests whether a decoder attends to later pieces
MAX_LOGIT_CHANGE = 1e-5  # largest change of logits, over the largest one, when the last piece of a text changes
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


class TransformersEngine:
    """A loaded checkpoint, as an `Engine` (see model.py)."""

    mapped = False

    def __init__(self, checkpoint: Checkpoint, pieces: int, device: Device = CPU):
        """Read a checkpoint for a tokenizer of `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        use_one_core_per_pass()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        architecture = runs.read_config(checkpoint, runs.Architecture)
        check_vocabulary(checkpoint, pieces)
        model = _read_model(checkpoint, architecture).eval()
        self._final_parts: list[torch.nn.Module] = []  # modules that a decoder applies after its last layer
        self._checkpoint, self._device, self._pieces = checkpoint, device, pieces
        if "next_words" in heads(checkpoint):
            with _reported(checkpoint, "compute"):
                self._final_parts = _final_parts(checkpoint, model)
        model = model.to(device.name, device.dtype)
        self._base = model.base_model
        self._head: Any = _head_of(model) if heads(checkpoint) & {"masked_words", "next_words"} else None
        self._detector = model if "replaced_tokens" in heads(checkpoint) else None
        self.max_positions = _positions(self._base, architecture.max_position_embeddings)
        self.num_layers = architecture.num_hidden_layers
        self.num_heads = architecture.num_attention_heads
        self.hidden_size = architecture.hidden_size
        self.nbytes = sum(values.numel() * values.element_size() for values in (*model.parameters(), *model.buffers()))
        self.max_batch_tokens = device.max_batch_tokens(pieces)
        self.parallel_passes = device.parallel_passes()

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        words, positions = self._base.get_input_embeddings().weight[: self._pieces], _position_embeddings(self._base)
        if positions is None:
            return words.float().cpu(), None
        return words.float().cpu(), positions.weight[_first_position(positions) :].float().cpu()

    def head(self, states: Tensor) -> Tensor:
        states = states.to(self._device.name, self._device.dtype)
        with _reported(self._checkpoint, "compute"):
            for module in self._final_parts:
                states = module(states)
            return self._output(states)

    def _output(self, states: Tensor) -> Tensor:
        """Compute word logits [n, V] of states [n, H] after the last layer."""
        logits = self._head(inputs_embeds=states[None]).logits[0]
        return logits[:, : self._pieces].float().cpu()

    def layer_logits(self, ids: Tensor, position: int) -> Tensor:
        return self.head(self.hidden_states(ids, None)[:, 0, position])

    def detect(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return self._pass(ids, mask, self._detector).logits.float().cpu()

    def hidden_states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        outputs = self._pass(ids, mask, output_hidden_states=True)
        states = list(outputs.hidden_states)
        # a last state of another shape has been projected to the width of the word embeddings
        if outputs.last_hidden_state.shape == states[-1].shape:
            states[-1] = outputs.last_hidden_state
        return torch.stack([state.float().cpu() for state in states])

    def attentions(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        attentions = self._pass(ids, mask, output_attentions=True).attentions
        return torch.stack([weights.float().cpu() for weights in attentions])

    @staticmethod
    def logits(
        engines: "Sequence[TransformersEngine]", ids: Tensor, mask: Tensor | None, positions: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        logits = []
        for engine, ids_of_engine in zip(engines, ids, strict=True):
            states = engine._pass(ids_of_engine, mask).last_hidden_state
            with _reported(engine._checkpoint, "compute"):
                logits.append(engine._output(states[positions[0].to(states.device), positions[1].to(states.device)]))
        return logits

    def forward_with_past(self, ids: Tensor, past: Tensor | None, last: int) -> tuple[Tensor, Tensor]:
        if past is not None:  # here the past is the ids, which are read again, since not every class has a cache
            ids = torch.cat([past[:, :, 0].expand(len(ids), -1), ids], 1)
        states = self._pass(ids, None).last_hidden_state[:, -last:]
        with _reported(self._checkpoint, "compute"):
            return self._output(states.flatten(0, 1)).unflatten(0, (len(ids), last)), ids[:, :, None]

    def _pass(self, ids: Tensor, mask: Tensor | None, model: PreTrainedModel | None = None, **outputs: bool) -> Any:
        """Run a model, by default the base model without a head, on ids [B, L]."""
        attention_mask = torch.ones_like(ids) if mask is None else mask[:, 0, 0].long()
        device = self._device.name
        with _reported(self._checkpoint, "compute"):
            return (model or self._base)(input_ids=ids.to(device), attention_mask=attention_mask.to(device), **outputs)


def _read_model(checkpoint: Checkpoint, architecture: runs.Architecture) -> Any:
    """Load the model with a class of transformers; all of its weights must be present."""
    tensors = read_finite(checkpoint)
    loader: Any = next((LOADERS[head] for head in LOADERS if head in heads(checkpoint)), AutoModel)
    with _reported(checkpoint, "read"):
        config = read_configuration(checkpoint)
        if any(name.startswith("lm_predictions.") for name in tensors):
            config.legacy = False  # DeBERTa's original names of the head
        with _BUILD_LOCK, torch.device("meta"):  # takes no memory
            parameters = sum(parameter.numel() for parameter in loader.from_config(config).parameters())
        if parameters > architecture.max_parameters:
            raise broken(checkpoint, f"config.json makes a model of {parameters:,} parameters")
        with _BUILD_LOCK:
            model, report = loader._model_mapping[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=tensors,
                attn_implementation="eager",  # other implementations return no attention weights
                dtype=torch.float32,
                output_loading_info=True,
            )
    if missing := sorted(name for name in report["missing_keys"] if "pooler" not in name):
        file, _ = runs.weights_file(checkpoint)
        raise broken(checkpoint, f"{file.name} lacks {', '.join(missing[:5])}")
    check_all_read(checkpoint, model, tensors, report["unexpected_keys"])
    return model


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
        file, _ = runs.weights_file(checkpoint)
        problem = f"{file.name} has {', '.join(unread[:3])}"
        raise broken(checkpoint, f"{problem}, which transformers does not read in a {type(model).__name__}")


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
            raise broken(checkpoint, f"config.json has {name} {value:,} (the maximum is {MAX_PARTS:,})")
    return AutoConfig.for_model(family, **settings | FORCED_SETTINGS.get(family, {}), use_cache=False)


def max_sequence_length(checkpoint: Checkpoint) -> int:
    """Return the largest number of pieces of a sequence, with special tokens. Raises BrokenCheckpoint."""
    max_positions = runs.read_config(checkpoint, runs.Architecture).max_position_embeddings
    with _reported(checkpoint, "read"), _BUILD_LOCK, torch.device("meta"):  # takes no memory
        return _positions(AutoModel.from_config(read_configuration(checkpoint)), max_positions)


@contextmanager
def _reported(checkpoint: Checkpoint, action: str) -> Iterator[None]:
    """Raise BrokenCheckpoint if transformers fails in the block, ConfigError if the device runs out of memory."""
    try:
        yield
    except torch.OutOfMemoryError as reason:
        raise ConfigError(
            f"{checkpoint.path} does not fit into the memory of its device ({first_line(reason)}); use --device cpu."
        ) from None
    except FAILURES as reason:
        why = first_line(reason.__cause__ or reason)
        raise broken(checkpoint, f"transformers cannot {action} it ({why})") from None


def _head_of(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of the model whose base passes the states [1, n, H] in `inputs_embeds` straight to the head.

    So the class itself applies its head, whatever its parts are named; some heads need other parts of the base.
    """
    encoder, head = copy.copy(model.base_model), copy.copy(model)
    encoder.forward = _pass_through
    if inner := encoder._modules.get("decoder"):  # OPT's class calls this inner module
        decoder = copy.copy(inner)
        decoder.forward = _pass_through
        encoder._modules = encoder._modules | {"decoder": decoder}
    head._modules = model._modules | {model.base_model_prefix: encoder}
    return head


def _final_parts(checkpoint: Checkpoint, model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return the modules that a decoder applies after its last layer, such as a norm, in order.

    Raises BrokenCheckpoint if the decoder attends to pieces that it should predict: two texts that differ only in their
    last piece must have the same logits before it.
    """
    calls: list[torch.nn.Module] = []
    layers = {
        module for stack in model.base_model.modules() if isinstance(stack, ModuleList) for module in stack.modules()
    }
    containers = {
        module for module in model.base_model.modules() if any(inner in layers for inner in module.children())
    }
    hooks = [
        module.register_forward_hook(lambda called, *_: calls.append(called)) for module in model.base_model.modules()
    ]
    ids = torch.arange(PROBE_LENGTH).repeat(2, 1) % model.config.vocab_size
    ids[1, -1] = 0
    try:
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    finally:
        for hook in hooks:
            hook.remove()
    change = (logits[0, :-1] - logits[1, :-1]).abs().max()
    if change > MAX_LOGIT_CHANGE * logits.abs().max():
        raise broken(checkpoint, "its logits at a piece depend on the pieces after it, which a decoder cannot see")
    last_layer_call = max((i for i, module in enumerate(calls) if module in layers), default=len(calls))
    return [
        module for module in calls[last_layer_call + 1 :] if module not in containers and module is not model.base_model
    ]


@dataclass
class _PassedThrough(BaseModelOutputWithPoolingAndCrossAttentions):
    """A base model's output, with the fields that the heads of some families read."""

    entity_last_hidden_state: None = None
    entity_hidden_states: None = None
    global_attentions: None = None
    router_logits: None = None
    shared_kv_states: None = None
    cache_params: None = None


def _pass_through(*_: Any, inputs_embeds: Tensor, **__: Any) -> _PassedThrough:
    return _PassedThrough(last_hidden_state=inputs_embeds)


def _positions(base: PreTrainedModel, max_positions: int) -> int:
    """Return the maximum length of a sequence, without the rows of position embeddings up to the padding row."""
    positions = _position_embeddings(base)
    if positions is None or not _first_position(positions):
        return max_positions
    return len(positions.weight) - _first_position(positions)


def _position_embeddings(base: PreTrainedModel) -> Any:
    """Return the table of position embeddings; some families have a special class for it."""
    modules = (module for name, module in base.named_modules() if name.endswith(POSITION_TABLES))
    return next((module for module in modules if hasattr(module, "weight") and hasattr(module, "padding_idx")), None)


def _first_position(positions: Any) -> int:
    """Return the row of the first position; earlier rows are padding."""
    if positions.padding_idx is not None:
        return positions.padding_idx + 1
    return getattr(positions, "offset", 0)
