"""Models of google-research's albert, bert and electra with two layers: their variables and their outputs.

Names and graph follow the original modeling.py and run_pretraining.py, in plain numpy without code of this project.
"""

from math import sqrt
from pathlib import Path

import numpy as np
from scipy.special import erf, softmax

V, E, H, I, L, P = 40, 8, 16, 24, 2, 32  # vocabulary, embedding, hidden, intermediate, layers, positions
HEADS, GENERATOR = 2, {"H": 8, "I": 32, "HEADS": 1}
CONFIG = {"num_hidden_layers": L, "num_attention_heads": HEADS, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
          "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02}  # fmt: skip
Variables = dict[str, np.ndarray]


def variables(family: str, seed: int = 0) -> Variables:
    """Return every variable of a checkpoint with random values, the optimizer's slots and the global step."""
    rng = np.random.default_rng(seed)
    values: Variables = {}

    def add(name: str, *shape: int) -> None:
        values[name] = rng.normal(0, 0.5, shape).astype(np.float32)

    def dense(name: str, inputs: int, outputs: int) -> None:
        add(f"{name}/kernel", inputs, outputs)
        add(f"{name}/bias", outputs)

    def norm(name: str, size: int) -> None:
        add(f"{name}/gamma", size)
        add(f"{name}/beta", size)

    root = "electra" if family == "electra" else "bert"
    embedding = H if family == "bert" else E
    for table, rows in (("word", V), ("position", P), ("token_type", 2)):
        add(f"{root}/embeddings/{table}_embeddings", rows, embedding)
    norm(f"{root}/embeddings/LayerNorm", embedding)
    if family == "albert":
        dense("bert/encoder/embedding_hidden_mapping_in", E, H)
        layer = "bert/encoder/transformer/group_0/inner_group_0"
        for part in ("query", "key", "value"):
            dense(f"{layer}/attention_1/self/{part}", H, H)
        dense(f"{layer}/attention_1/output/dense", H, H)
        dense(f"{layer}/ffn_1/intermediate/dense", H, I)
        dense(f"{layer}/ffn_1/intermediate/output/dense", I, H)
        norm(f"{layer}/LayerNorm", H)
        norm(f"{layer}/LayerNorm_1", H)
    electra = [("electra", H, I), ("generator", GENERATOR["H"], GENERATOR["I"])]
    encoders = {"albert": [], "bert": [("bert", H, I)], "electra": electra}
    for scope, hidden, inner in encoders[family]:
        if hidden != embedding:
            dense(f"{scope}/embeddings_project", embedding, hidden)
        for i in range(L):
            layer = f"{scope}/encoder/layer_{i}"
            for part in ("query", "key", "value"):
                dense(f"{layer}/attention/self/{part}", hidden, hidden)
            dense(f"{layer}/attention/output/dense", hidden, hidden)
            dense(f"{layer}/intermediate/dense", hidden, inner)
            dense(f"{layer}/output/dense", inner, hidden)
            norm(f"{layer}/attention/output/LayerNorm", hidden)
            norm(f"{layer}/output/LayerNorm", hidden)
    if family == "electra":
        dense("discriminator_predictions/dense", H, H)
        dense("discriminator_predictions/dense_1", H, 1)
        dense("generator_predictions/dense", GENERATOR["H"], E)
        norm("generator_predictions/LayerNorm", E)
        add("generator_predictions/output_bias", V)
    else:
        dense("bert/pooler/dense", H, H)
        dense("cls/predictions/transform/dense", H, embedding)
        norm("cls/predictions/transform/LayerNorm", embedding)
        add("cls/predictions/output_bias", V)
        add("cls/seq_relationship/output_weights", 2, H)
        add("cls/seq_relationship/output_bias", 2)
    slots = {f"{name}/{slot}": np.ones_like(array) for name, array in values.items() for slot in ("adam_m", "adam_v")}
    return values | slots | {"global_step": np.array(7, np.int64)}


def save(prefix: Path, values: Variables) -> None:
    """Write a checkpoint as TensorFlow 1 does, with the operation of its Saver."""
    import tensorflow as tf

    names = sorted(values)
    tensors = [tf.constant(values[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


# === Outputs ===


def masked_words(family: str, w: Variables, ids: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the logits of the masked-word head at every position, [B, T, V]; for ELECTRA, those of the generator."""
    if family == "electra":
        head, table = "generator_predictions", "electra"
        states = states_of(family, w, ids, segments, "generator")[-1]
        x = _norm(_gelu(_dense(states, w, f"{head}/dense")), w, f"{head}/LayerNorm")
    else:
        head, table = "cls/predictions", "bert"
        states = states_of(family, w, ids, segments)[-1]
        x = _norm(_gelu_tanh(_dense(states, w, f"{head}/transform/dense")), w, f"{head}/transform/LayerNorm")
    return x @ w[f"{table}/embeddings/word_embeddings"].T + w[f"{head}/output_bias"]


def pairs(family: str, w: Variables, ids: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the logits of the sentence loss, [B, 2]."""
    pooled = np.tanh(_dense(states_of(family, w, ids, segments)[-1][:, 0], w, "bert/pooler/dense"))
    return pooled @ w["cls/seq_relationship/output_weights"].T + w["cls/seq_relationship/output_bias"]


def replaced_tokens(w: Variables, ids: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the logits of ELECTRA's discriminator, [B, T]."""
    states = states_of("electra", w, ids, segments)[-1]
    hidden = _gelu(_dense(states, w, "discriminator_predictions/dense"))
    return _dense(hidden, w, "discriminator_predictions/dense_1")[..., 0]


def states_of(family: str, w: Variables, ids: np.ndarray, segments: np.ndarray, scope: str = "") -> list[np.ndarray]:
    """Return the hidden states [B, T, H]: the embeddings that enter the first layer, then the output of every layer."""
    root = "electra" if family == "electra" else "bert"
    scope = scope or root
    tables = {name: w[f"{root}/embeddings/{name}_embeddings"] for name in ("word", "position", "token_type")}
    x = tables["word"][ids] + tables["position"][: ids.shape[1]] + tables["token_type"][segments]
    x = _norm(x, w, f"{root}/embeddings/LayerNorm")
    for projection in ("bert/encoder/embedding_hidden_mapping_in", f"{scope}/embeddings_project"):
        if f"{projection}/kernel" in w:
            x = _dense(x, w, projection)
    states = [x]
    heads = GENERATOR["HEADS"] if scope == "generator" else HEADS
    for i in range(L):
        states.append(_albert_layer(states[-1], w) if family == "albert" else _layer(states[-1], w, scope, i, heads))
    return states


def _albert_layer(x: np.ndarray, w: Variables) -> np.ndarray:
    layer = "bert/encoder/transformer/group_0/inner_group_0"
    attended = _dense(_attend(x, w, f"{layer}/attention_1/self", HEADS), w, f"{layer}/attention_1/output/dense")
    x = _norm(attended + x, w, f"{layer}/LayerNorm")
    inner = _gelu_tanh(_dense(x, w, f"{layer}/ffn_1/intermediate/dense"))
    return _norm(_dense(inner, w, f"{layer}/ffn_1/intermediate/output/dense") + x, w, f"{layer}/LayerNorm_1")


def _layer(x: np.ndarray, w: Variables, scope: str, i: int, heads: int) -> np.ndarray:
    layer, activation = f"{scope}/encoder/layer_{i}", _gelu_tanh if scope == "bert" else _gelu
    attended = _dense(_attend(x, w, f"{layer}/attention/self", heads), w, f"{layer}/attention/output/dense")
    x = _norm(attended + x, w, f"{layer}/attention/output/LayerNorm")
    inner = activation(_dense(x, w, f"{layer}/intermediate/dense"))
    return _norm(_dense(inner, w, f"{layer}/output/dense") + x, w, f"{layer}/output/LayerNorm")


def _attend(x: np.ndarray, w: Variables, scope: str, heads: int) -> np.ndarray:
    batch, length, hidden = x.shape
    query, key, value = (
        _dense(x, w, f"{scope}/{part}").reshape(batch, length, heads, -1).swapaxes(1, 2)
        for part in ("query", "key", "value")
    )
    weights = softmax(query @ key.swapaxes(-1, -2) / sqrt(hidden // heads), axis=-1)
    return (weights @ value).swapaxes(1, 2).reshape(batch, length, hidden)


def _dense(x: np.ndarray, w: Variables, name: str) -> np.ndarray:
    return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]


def _norm(x: np.ndarray, w: Variables, name: str) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * w[f"{name}/gamma"] + w[f"{name}/beta"]


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / sqrt(2)))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
