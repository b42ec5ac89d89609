"""The engine that runs models with transformers: all supported encoders and decoders, on any device."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import ModuleList
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions
from transformers.utils import logging

from embryo_core.engine.device import CPU, Device
from embryo_core.engine.engine import Engine
from embryo_core.engine.tensor_files import broken_error
from embryo_core.engine.transformers_models import (
    build_model,
    count_positions,
    first_position,
    position_embeddings,
    reporting_failures,
)
from embryo_core.types import Checkpoint

PROBE_LENGTH = 8  # pieces of the text that tests whether a decoder attends to later pieces
MAX_LOGIT_CHANGE = 1e-5  # largest change of logits, over the largest one, when the last piece of a text changes


class TransformersEngine(Engine):
    """A loaded checkpoint of any supported family."""

    def __init__(self, checkpoint: Checkpoint, pieces: int, device: Device = CPU):
        """Read a checkpoint for a tokenizer of `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        super().__init__(checkpoint, pieces, device)
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        model = build_model(checkpoint, self.architecture).eval()
        self._checkpoint, self._device, self._pieces = checkpoint, device, pieces
        with reporting_failures(checkpoint, "compute"):
            self._final_parts = _final_parts(model)
            if "next_words" in self.heads:
                _check_causal(checkpoint, model)
        model = model.to(device.name, device.dtype)
        self._base = model.base_model
        self._unprojected = _without_projection(self._base, self._final_parts)
        self._head: Any = _head_of(model) if self.heads & {"masked_words", "next_words"} else None
        self._detector = model if "replaced_tokens" in self.heads else None
        self.max_positions = count_positions(self._base, self.max_positions)
        self.nbytes = sum(values.numel() * values.element_size() for values in (*model.parameters(), *model.buffers()))
        self.max_batch_tokens = device.max_batch_tokens(pieces)

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        words, positions = self._base.get_input_embeddings().weight[: self._pieces], position_embeddings(self._base)
        if positions is None:
            return words.float().cpu(), None
        return words.float().cpu(), positions.weight[first_position(positions) :].float().cpu()

    def head(self, states: Tensor) -> Tensor:
        states = states.to(self._device.name, self._device.dtype)
        with reporting_failures(self._checkpoint, "compute"):
            for module in self._final_parts:
                states = module(states)
            return self._output(states)

    def _output(self, states: Tensor) -> Tensor:
        """Compute word logits [n, V] of states [n, H] after the last layer."""
        logits = self._head(inputs_embeds=states[None]).logits[0]
        return logits[:, : self._pieces].float().cpu()

    def layer_logits(self, ids: Tensor, position: int) -> Tensor:
        states = self.hidden_states(ids)[:, 0, position]
        with reporting_failures(self._checkpoint, "compute"):  # the final parts have been applied to the last state
            last = self._output(states[-1:].to(self._device.name, self._device.dtype))
        return torch.cat([self.head(states[:-1]), last])

    def detect(self, ids: Tensor) -> Tensor:
        return self._pass(ids, self._detector).logits.float().cpu()

    def hidden_states(self, ids: Tensor) -> Tensor:
        outputs = self._pass(ids, self._unprojected, output_hidden_states=True)
        states = (*outputs.hidden_states[:-1], outputs.last_hidden_state)
        return torch.stack([state.float().cpu() for state in states])

    def attentions(self, ids: Tensor) -> Tensor:
        attentions = self._pass(ids, output_attentions=True).attentions
        return torch.stack([weights.float().cpu() for weights in attentions])

    @staticmethod
    def logits(engines: "Sequence[TransformersEngine]", ids: Tensor, positions: tuple[Tensor, Tensor]) -> list[Tensor]:
        logits = []
        for engine, ids_of_engine in zip(engines, ids, strict=True):
            states = engine._pass(ids_of_engine).last_hidden_state
            with reporting_failures(engine._checkpoint, "compute"):
                logits.append(engine._output(states[positions[0].to(states.device), positions[1].to(states.device)]))
        return logits

    def forward_with_past(self, ids: Tensor, past: Tensor | None, last: int) -> tuple[Tensor, Tensor]:
        if past is not None:  # here the past is the ids, which are read again, since not every class has a cache
            ids = torch.cat([past[:, :, 0].expand(len(ids), -1), ids], 1)
        states = self._pass(ids).last_hidden_state[:, -last:]
        with reporting_failures(self._checkpoint, "compute"):
            return self._output(states.flatten(0, 1)).unflatten(0, (len(ids), last)), ids[:, :, None]

    def _pass(self, ids: Tensor, model: PreTrainedModel | None = None, **outputs: bool) -> Any:
        """Run a model, by default the base model without a head, on ids [B, L]."""
        ids = ids.to(self._device.name)
        with reporting_failures(self._checkpoint, "compute"):
            return (model or self._base)(input_ids=ids, attention_mask=torch.ones_like(ids), **outputs)


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


def _final_parts(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return the modules that a model applies to every state after its last layer, such as a norm, in order."""
    base = model.base_model
    calls: list[tuple[torch.nn.Module, Any]] = []  # modules in the order of their calls, with what they return
    layers = {module for stack in base.modules() if isinstance(stack, ModuleList) for module in stack.modules()}
    containers = {module for module in base.modules() if any(inner in layers for inner in module.children())}
    hooks = [
        module.register_forward_hook(lambda called, _, output: calls.append((called, output)))
        for module in base.modules()
    ]
    ids = torch.ones(1, 2, dtype=torch.long)
    try:
        with torch.inference_mode():
            base(input_ids=ids, attention_mask=ids)
    finally:
        for hook in hooks:
            hook.remove()
    last_layer_call = max((i for i, (module, _) in enumerate(calls) if module in layers), default=len(calls))
    return [
        module
        for module, output in calls[last_layer_call + 1 :]
        if module not in containers and module is not base
        if isinstance(output, Tensor) and output.ndim == ids.ndim + 1  # a pooler returns one state of each text
    ]


def _without_projection(base: PreTrainedModel, final_parts: Sequence[torch.nn.Module]) -> PreTrainedModel:
    """Return the base model, without a final part that projects states to the width of word embeddings, as in OPT."""
    for name, part in base.named_modules():
        if part in final_parts and isinstance(part, torch.nn.Linear) and part.in_features != part.out_features:
            return _replace(base, name.split("."), torch.nn.Identity())
    return base


def _replace(module: Any, path: Sequence[str], part: torch.nn.Module) -> Any:
    """Return a copy of a module that shares all parts but the one at `path`."""
    copied, (name, *rest) = copy.copy(module), path
    copied._modules = module._modules | {name: _replace(module._modules[name], rest, part) if rest else part}
    return copied


def _check_causal(checkpoint: Checkpoint, model: PreTrainedModel) -> None:
    """Raise BrokenCheckpoint if a decoder attends to pieces that it should predict.

    Two texts that differ only in their last piece must have the same logits before it.
    """
    ids = torch.arange(PROBE_LENGTH).repeat(2, 1) % model.config.vocab_size
    ids[1, -1] = 0
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    change = (logits[0, :-1] - logits[1, :-1]).abs().max()
    if change > MAX_LOGIT_CHANGE * logits.abs().max():
        raise broken_error(
            checkpoint, "its logits at a piece depend on the pieces after it, which a decoder cannot see"
        )


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
