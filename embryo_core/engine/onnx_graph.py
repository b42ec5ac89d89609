"""The networks of ALBERT, BERT, ELECTRA, GPT-2 and GPT-NeoX as ONNX graphs without weights, for a browser.

A graph reads one text. Its inputs are `ids` [L], `positions` [L] (0, 1, ...), `at` [n], and each tensor of the
checkpoint that it uses, under its name and in the type of model.safetensors. Its output `logits` [n, V] is the head
applied to the states `at`: number i * L + p is the state of layer i (0: the embeddings) at position p. A graph computes
the same numbers as network.py or decoder_network.py.
"""

from collections.abc import Mapping

import numpy as np

from embryo_core import runs
from embryo_core.engine.capabilities import is_decoder
from embryo_core.engine.fast_decoder import decoder_activation, frequencies, is_fast, output_name
from embryo_core.engine.fast_engine import ACTIVATIONS, activation_of, output_names
from embryo_core.engine.onnx_file import FLOAT, FLOAT16, INT64, ONNX_TYPES, OnnxGraph
from embryo_core.errors import MissingCapability
from embryo_core.families import DECODERS, ENCODERS
from embryo_core.runs.architecture import layer_group
from embryo_core.runs.schema import TensorHeader
from embryo_core.types import Checkpoint

Tensors = Mapping[str, TensorHeader]


def network_graph(checkpoint: Checkpoint, tensors: Tensors) -> bytes:
    """Return the graph of a checkpoint with these tensors. Raises MissingCapability if no graph computes its model."""
    model_class = runs.read_config(checkpoint, runs.ModelClass)
    family, families = model_class.model_type, (*ENCODERS, *DECODERS)
    if family not in families:
        raise MissingCapability(f"its family {family!r} has no graph for a browser (only {', '.join(families)} have)")
    has_decoder = is_decoder(model_class)
    known_parts = is_fast(checkpoint) if has_decoder else runs.read_config(checkpoint, runs.Architecture).hidden_act
    if known_parts is not True and known_parts not in ACTIVATIONS:
        raise MissingCapability("its config.json names an activation or parts that have no graph for a browser")
    if not has_decoder:
        return _encoder(runs.read_config(checkpoint, runs.Architecture), tensors)
    return _decoder(checkpoint, tensors)


class _Graph(OnnxGraph):
    """A graph on the states [L, H] of one text; its inputs are the weights, and `at` [n], the states to decode."""

    def __init__(self, tensors: Tensors, epsilon: float):
        super().__init__()
        self._tensors, self._epsilon = tensors, epsilon
        self._weights: dict[str, str] = {}
        self.ids = self.input("ids", INT64, ["L"])
        self.positions = self.input("positions", INT64, ["L"])
        self.at = self.input("at", INT64, ["n"])

    def weight(self, name: str) -> str:
        """Return a tensor in float32, as an input. Raises MissingCapability unless it is stored as F16 or F32."""
        if name not in self._weights:
            tensor = self._tensors.get(name)
            if tensor is None or (data_type := ONNX_TYPES.get(tensor.dtype)) is None:
                problem = f"is stored as {tensor.dtype}, not F16 or F32" if tensor else "is missing"
                raise MissingCapability(f"its tensor {name} {problem}")
            self.input(name, data_type, tensor.shape)
            self._weights[name] = self.add("Cast", name, to=FLOAT) if data_type == FLOAT16 else name
        return self._weights[name]

    def rows(self, name: str, which: str) -> str:
        """Return the rows `which` of a table of embeddings."""
        return self.add("Gather", self.weight(name), which)

    def linear(self, states: str, name: str, transposed: bool = False) -> str:
        """Apply the linear map of that name; its weight is stored as [out, in], or as [in, out] if `transposed`."""
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("Gemm", states, weight, bias, transB=int(not transposed))

    def norm(self, states: str, name: str) -> str:
        """Apply the layer normalisation of that name, over the last axis."""
        gain, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", states, gain, bias, epsilon=self._epsilon)

    def activate(self, states: str, name: str) -> str:
        """Apply gelu, gelu_tanh or relu."""
        if name == "relu":
            return self.add("Relu", states)
        return self.add("Gelu", states, approximate="tanh" if name == "gelu_tanh" else "none")

    def reshape(self, states: str, *shape: int) -> str:
        """Reshape states; 0 keeps the size of an axis, and -1 takes the remaining size."""
        return self.add("Reshape", states, self.constant(shape))

    def heads(self, states: str, heads: int, size: int) -> str:
        """Split [L, H] into [heads, L, D]."""
        return self.add("Transpose", self.reshape(states, 0, heads, size), perm=(1, 0, 2))

    def attend(self, query: str, key: str, value: str, scale: float, hidden: int, mask: str = "") -> str:
        """Mix values [heads, L, D] into [L, H]; `mask` [L, L] is added to the scores."""
        scores = self.add("MatMul", query, self.add("Transpose", key, perm=(0, 2, 1)))
        scores = self.add("Mul", scores, self.constant(scale))
        weights = self.add("Softmax", self.add("Add", scores, mask) if mask else scores, axis=-1)
        context = self.add("Transpose", self.add("MatMul", weights, value), perm=(1, 0, 2))
        return self.reshape(context, 0, hidden)

    def chosen(self, states: list[str]) -> str:
        """Return the states [n, H] that `at` selects from the states [L, H] of all layers."""
        return self.add("Gather", self.add("Concat", *states, axis=0), self.at)

    def finish(self, states: str, decoder: str, bias: str = "") -> bytes:
        """Apply the output matrix [V, H] to states [n, H], and return the serialised model."""
        inputs = [states, self.weight(decoder), *([self.weight(bias)] if bias else [])]
        return self.to_bytes(self.add("Gemm", *inputs, output="logits", transB=1), ["n", "V"])


# === Encoders ===


def _encoder(architecture: runs.Architecture, tensors: Tensors) -> bytes:
    """Return the graph of an encoder, with the operations of network.py."""
    graph = _Graph(tensors, architecture.layer_norm_eps)
    names = architecture.layout.names
    heads = architecture.num_attention_heads
    size = architecture.hidden_size // heads
    part, activation = names["embeddings"], activation_of(architecture)
    summed = graph.add(
        "Add",
        graph.rows(f"{part}.position_embeddings.weight", graph.positions),
        graph.rows(f"{part}.token_type_embeddings.weight", graph.constant([0])),
    )
    words = f"{part}.word_embeddings.weight"
    embedded = graph.norm(graph.add("Add", graph.rows(words, graph.ids), summed), f"{part}.LayerNorm")
    states = [graph.linear(embedded, names["projection"]) if architecture.is_projected else embedded]
    for i in range(architecture.num_hidden_layers):
        prefix = names["layer"].format(layer_group(i, architecture.num_hidden_layers, architecture.group_count))
        layer_names = {part: f"{prefix}.{name}" for part, name in names.items()}
        query, key, value = (
            graph.heads(graph.linear(states[-1], layer_names[part]), heads, size) for part in ("query", "key", "value")
        )
        attention = graph.linear(
            graph.attend(query, key, value, size**-0.5, architecture.hidden_size), layer_names["output"]
        )
        attended = graph.norm(graph.add("Add", attention, states[-1]), layer_names["attention_norm"])
        inner = graph.activate(graph.linear(attended, layer_names["inner"]), activation)
        states.append(
            graph.norm(graph.add("Add", graph.linear(inner, layer_names["outer"]), attended), layer_names["norm"])
        )
    dense = graph.activate(
        graph.linear(graph.chosen(states), names["dense"]), architecture.layout.head_activation or activation
    )
    decoder, bias = output_names(architecture, tensors)
    return graph.finish(graph.norm(dense, names["head_norm"]), words if decoder is None else decoder, bias)


# === Decoders ===


def _decoder(checkpoint: Checkpoint, tensors: Tensors) -> bytes:
    """Return the graph of a decoder, with the operations of decoder_network.py."""
    architecture = runs.read_config(checkpoint, runs.Architecture)
    config = runs.read_config(checkpoint, runs.DecoderConfig)
    layout = DECODERS[architecture.model_type]
    names, heads, graph = layout.names, architecture.num_attention_heads, _Graph(tensors, config.epsilon)
    base = layout.base if any(name.startswith(layout.base) for name in tensors) else ""
    words, size = f"{base}{names['words']}.weight", architecture.hidden_size // heads
    embedded = graph.rows(words, graph.ids)
    if position_name := names.get("positions"):
        embedded = graph.add("Add", embedded, graph.rows(f"{base}{position_name}.weight", graph.positions))
    rotation = _rotation(graph, frequencies(architecture, config).numpy()) if layout.rotary else None
    states, mask = [embedded], _causal_mask(graph)
    parallel = layout.parallel if config.use_parallel_residual is None else config.use_parallel_residual
    scale = size**-0.5 if config.scale_attn_weights else 1.0
    for i in range(architecture.num_hidden_layers):
        layer_names = {part: f"{base}{names['layer'].format(i)}.{name}" for part, name in names.items()}
        layer_input, transposed = states[-1], layout.transposed
        projected = graph.linear(
            graph.norm(layer_input, layer_names["attention_norm"]), layer_names["query_key_value"], transposed
        )
        shape, order = ((heads, 3), (2, 1, 0, 3)) if layout.by_head else ((3, heads), (1, 2, 0, 3))
        split = graph.add("Transpose", graph.reshape(projected, 0, *shape, size), perm=order)  # [3, heads, L, D]
        query, key, value = (graph.add("Gather", split, graph.constant(np.array(part)), axis=0) for part in range(3))
        if rotation:
            query, key = (_rotate(graph, vector, rotation, size) for vector in (query, key))
        layer_scale = scale / (i + 1) if config.scale_attn_by_inverse_layer_idx else scale
        context = graph.attend(query, key, value, layer_scale, architecture.hidden_size, mask)
        residual = graph.add("Add", graph.linear(context, layer_names["output"], transposed), layer_input)
        inner = graph.linear(
            graph.norm(layer_input if parallel else residual, layer_names["norm"]), layer_names["inner"], transposed
        )
        outer = graph.linear(
            graph.activate(inner, decoder_activation(config, layout)), layer_names["outer"], transposed
        )
        states.append(graph.add("Add", outer, residual))
    output = output_name(layout, config, tensors) or words
    return graph.finish(graph.norm(graph.chosen(states), base + names["final_norm"]), output)


def _causal_mask(graph: _Graph) -> str:
    """Return the mask [L, L] that is added to scores, so that no piece attends to later ones."""
    rows, columns = (graph.add("Unsqueeze", graph.positions, graph.constant([axis])) for axis in (1, 0))
    later = graph.add("Less", rows, columns)
    return graph.add("Where", later, graph.constant(-np.inf), graph.constant(0.0))


def _rotation(graph: _Graph, rates: np.ndarray) -> tuple[str, str, int]:
    """Return cosine and sine [L, R] of the angles of all positions, and R."""
    positions = graph.add("Unsqueeze", graph.add("Cast", graph.positions, to=FLOAT), graph.constant([1]))
    angles = graph.add("Mul", positions, graph.constant(np.concatenate([rates, rates])[None]))
    return graph.add("Cos", angles), graph.add("Sin", angles), 2 * len(rates)


def _rotate(graph: _Graph, states: str, rotation: tuple[str, str, int], size: int) -> str:
    """Rotate the first R dimensions of queries or keys [heads, L, D]."""
    cosine, sine, rotated_size = rotation
    if not rotated_size:
        return states
    bounds = ((0, rotated_size // 2), (rotated_size // 2, rotated_size), (rotated_size, size))
    low, high, rest = (
        graph.add("Slice", states, graph.constant([a]), graph.constant([b]), graph.constant([2])) for a, b in bounds
    )
    pair = graph.add("Concat", low, high, axis=-1)
    half = graph.add("Concat", graph.add("Neg", high), low, axis=-1)
    output = graph.add("Add", graph.add("Mul", pair, cosine), graph.add("Mul", half, sine))
    return output if rotated_size == size else graph.add("Concat", output, rest, axis=-1)
