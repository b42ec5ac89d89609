"""The engine through transformers: every family of masked language models, on any device."""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions
from transformers.utils import logging

from embryo_core import runs
from embryo_core.engine import cpu
from embryo_core.engine.capabilities import has_masked_word_head, has_replaced_token_head
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.stored import broken, check_finite, read_tensors
from embryo_core.errors import ConfigError, first_line
from embryo_core.tokenizers.tokenizer import check_vocabulary
from embryo_core.types import Checkpoint

NAMES_CODE = ("auto_map", "quantization_config", "dtype", "torch_dtype")  # or another form: left out of config.json
PASSES = {  # how a family computes, whatever config.json says, by its model_type
    # Its sparse form turns into this at the first short text, in all layers and for good, whoever computes meanwhile.
    "big_bird": {"attention_type": "original_full"},
}
BUFFERS = ("pooler", "position_ids", "inv_freq")  # parts of the names of tensors that no pass needs
NUMBERED = re.compile(r"(^|\.)\d+\.")  # in the name of a layer's tensor
ASKED = ("output_attentions", "output_hidden_states", "return_dict")  # by each pass, whatever config.json says
_BUILDING = Lock()  # transformers changes its classes while it makes a model, and another thread's would lack weights
FAILURES = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,
    ImportError,
    AssertionError,
    StrictDataclassError,  # a value in config.json of another type
)


class HubEngine:
    """One loaded checkpoint as an `Engine` (see model.py)."""

    def __init__(self, checkpoint: Checkpoint, pieces: int, device: Device = CPU):
        """Read a checkpoint for a tokenizer of so many pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        cpu.use_one_core_per_pass()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        sizes = runs.read_config(checkpoint, runs.Architecture)
        check_vocabulary(checkpoint, pieces)
        model = _read_model(checkpoint, sizes).to(device.name, device.dtype).eval()
        self._checkpoint, self._device, self._pieces = checkpoint, device, pieces
        self._base: PreTrainedModel = model.base_model
        self._head = _head_alone(model) if has_masked_word_head(checkpoint) else None
        self._detector = model if has_replaced_token_head(checkpoint) else None
        self.max_positions = _positions(self._base, sizes.max_position_embeddings)
        self.num_layers = sizes.num_hidden_layers
        self.num_heads = sizes.num_attention_heads
        self.hidden_size = sizes.hidden_size
        self.nbytes = sum(part.numel() * part.element_size() for part in (*model.parameters(), *model.buffers()))
        self.tokens_at_once = device.tokens_at_once(pieces)

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        words, positions = self._base.get_input_embeddings().weight[: self._pieces], _position_embeddings(self._base)
        if positions is None:
            return words.float().cpu(), None
        first = 0 if positions.padding_idx is None else positions.padding_idx + 1  # rows that stand for a position
        return words.float().cpu(), positions.weight[first:].float().cpu()

    def head(self, states: Tensor) -> Tensor:
        states = states.to(self._device.name, self._device.dtype)[None]
        with _reported(self._checkpoint, "compute"):
            logits = self._head(inputs_embeds=states).logits[0]
        return logits[:, : self._pieces].float().cpu()

    def detect(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return self._pass(ids, mask, self._detector).logits.float().cpu()

    def hidden_states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        found = self._pass(ids, mask, output_hidden_states=True)
        states = (*found.hidden_states[:-1], found.last_hidden_state)
        return torch.stack([state.float().cpu() for state in states])

    def attentions(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        found = self._pass(ids, mask, output_attentions=True).attentions
        return torch.stack([weights.float().cpu() for weights in found])

    @staticmethod
    def logits(
        engines: "Sequence[HubEngine]", ids: Tensor, mask: Tensor | None, at: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        found = []
        for engine, own in zip(engines, ids, strict=True):
            states = engine._pass(own, mask).last_hidden_state
            found.append(engine.head(states[at[0].to(states.device), at[1].to(states.device)]))
        return found

    def passes_at_once(self) -> int:
        return self._device.passes_at_once()

    def _pass(self, ids: Tensor, mask: Tensor | None, model: PreTrainedModel | None = None, **outputs: bool) -> Any:
        seen = torch.ones_like(ids) if mask is None else mask[:, 0, 0].long()
        device = self._device.name
        with _reported(self._checkpoint, "compute"):
            return (model or self._base)(input_ids=ids.to(device), attention_mask=seen.to(device), **outputs)


def _read_model(checkpoint: Checkpoint, sizes: runs.Architecture) -> PreTrainedModel:
    """The model with its weights, all of which have to be there; a class of transformers alone."""
    tensors = read_tensors(checkpoint)
    for name, tensor in tensors.items():
        check_finite(checkpoint, name, tensor)
    loader = AutoModelForMaskedLM if has_masked_word_head(checkpoint) else AutoModel
    loader = AutoModelForPreTraining if has_replaced_token_head(checkpoint) else loader
    with _reported(checkpoint, "read"):
        config = read_configuration(checkpoint)
        with _BUILDING, torch.device("meta"):  # which takes no memory
            parameters = sum(part.numel() for part in loader.from_config(config).parameters())
        if parameters > sizes.most_parameters:
            raise broken(checkpoint, f"config.json makes a model of {parameters:,} parameters")
        with _BUILDING:
            model, report = loader._model_mapping[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=tensors,
                attn_implementation="eager",  # the one that returns its weights
                dtype=torch.float32,
                output_loading_info=True,
            )
    if lacking := sorted(name for name in report["missing_keys"] if "pooler" not in name):
        file, _ = runs.weights_file(checkpoint)
        raise broken(checkpoint, f"{runs.shown(file.name)} lacks {', '.join(lacking[:5])}")
    check_all_read(checkpoint, model, tensors, report["unexpected_keys"])
    return model


def check_all_read(
    checkpoint: Checkpoint, model: PreTrainedModel, stored: Iterable[str], unexpected: Iterable[str]
) -> None:
    """Raise BrokenCheckpoint where a tensor of the encoder is among the stored ones that its class does not know.

    Its answers would be those of another model, as of one with relative positions without them. Heads of other tasks
    may be there.
    """
    encoder = f"{model.base_model_prefix}."
    named = any(name.startswith(encoder) for name in stored)
    unread = sorted(
        name
        for name in unexpected
        if (name.startswith(encoder) if named else NUMBERED.search(name)) and not any(one in name for one in BUFFERS)
    )
    if unread:
        file, _ = runs.weights_file(checkpoint)
        what = f"{runs.shown(file.name)} has {runs.shown(', '.join(unread[:3]))}"
        raise broken(checkpoint, f"{what}, which transformers does not read in a {type(model).__name__}")


def read_configuration(checkpoint: Checkpoint) -> PreTrainedConfig:
    """The configuration by its model_type, without what could name code from elsewhere, or what a pass returns."""
    content = runs.read_config(checkpoint, dict[str, Any])
    left_out = NAMES_CODE + ASKED
    plain = {name: value for name, value in content.items() if not name.startswith("_") and name not in left_out}
    family = plain.pop("model_type")
    return AutoConfig.for_model(family, **plain | PASSES.get(family, {}))


def most_pieces(checkpoint: Checkpoint) -> int:
    """Pieces of the longest sequence that the model reads, special tokens included; its weights are not read.

    Raises BrokenCheckpoint.
    """
    configured = runs.read_config(checkpoint, runs.Architecture).max_position_embeddings
    with _reported(checkpoint, "read"), _BUILDING, torch.device("meta"):  # which takes no memory
        return _positions(AutoModel.from_config(read_configuration(checkpoint)), configured)


@contextmanager
def _reported(checkpoint: Checkpoint, what: str) -> Iterator[None]:
    """Raise BrokenCheckpoint where transformers cannot do this, and ConfigError where the device has no room for it."""
    try:
        yield
    except torch.OutOfMemoryError as reason:
        raise ConfigError(
            f"{checkpoint.path} does not fit into the memory of its device ({first_line(reason)}); take --device cpu."
        ) from None
    except FAILURES as reason:
        why = first_line(reason.__cause__ or reason)
        raise broken(checkpoint, f"transformers cannot {what} it ({why})") from None


def _head_alone(model: PreTrainedModel) -> PreTrainedModel:
    """The model whose encoder hands on the states [1, n, H] that are given as `inputs_embeds`.

    Every class names the parts of its head otherwise; this way the class itself applies them. The encoder keeps all but
    its pass: some heads ask it for its embeddings.
    """
    encoder, head = copy.copy(model.base_model), copy.copy(model)
    encoder.forward = _hand_on
    head._modules = model._modules | {model.base_model_prefix: encoder}
    return head


@dataclass
class _Handed(BaseModelOutputWithPoolingAndCrossAttentions):
    """What some encoders return besides, for which their heads look."""

    entity_last_hidden_state: None = None
    entity_hidden_states: None = None
    global_attentions: None = None


def _hand_on(*_: Any, inputs_embeds: Tensor, **__: Any) -> _Handed:
    return _Handed(last_hidden_state=inputs_embeds)


def _positions(base: PreTrainedModel, configured: int) -> int:
    """Pieces in a sequence; where position embeddings have a row for padding, they are counted from behind it."""
    positions = _position_embeddings(base)
    if positions is None or positions.padding_idx is None:
        return configured
    return len(positions.weight) - positions.padding_idx - 1


def _position_embeddings(base: PreTrainedModel) -> nn.Module | None:
    """The table of a model that has an embedding for each position; some classes have one of their own for it."""
    found = (part for name, part in base.named_modules() if name.rpartition(".")[2] == "position_embeddings")
    return next((part for part in found if hasattr(part, "weight") and hasattr(part, "padding_idx")), None)
