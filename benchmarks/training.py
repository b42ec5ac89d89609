"""Time a training step of each family: our Keras and XLA against transformers and torch, on the same cores.

It also prints our GFLOP/s, and their share of a plain float32 matrix product in the same run. Both train the same model
on the same masked batches, theirs in float32, in turn within one run; the ratio is the median over rounds. transformers
computes logits for the whole sequence and is updated by torch's AdamW, as in its own examples; it has no ELECTRA that
trains both networks, so torch samples between the two, which share embeddings. Usage:
python benchmarks/training.py [ROUNDS [THREADS [DTYPE]]]; ours computes in DTYPE, float32 or bfloat16.

On cores that other programs also use, torch's threads wait for each other and become slow; one thread each is then the
fairer comparison.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import perf_counter

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
THREADS = sys.argv[2] if len(sys.argv) > 2 else str(os.cpu_count())
DTYPE = sys.argv[3] if len(sys.argv) > 3 else "float32"
for _name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ[_name] = THREADS  # read when torch and TensorFlow are imported

import numpy as np
import torch
from transformers import (
    AlbertForPreTraining,
    BertForPreTraining,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    GPT2LMHeadModel,
)

from pretrain.config import Config, MaskedConfig
from pretrain.families import FAMILIES, preset
from pretrain.masking import Batch, Masking
from pretrain.tokenizer import WordStarts
from pretrain.train import build
from pretrain.vocabularies import CLS, MASK, SEP

SHAPES = (  # preset, sequences of a batch, tokens of a sequence
    ("albert-small", 16, 64),
    ("albert-small", 32, 64),
    ("albert-small", 8, 128),
    ("bert-small", 8, 128),
    ("electra-small", 8, 128),
    ("gpt2-small", 8, 128),
)
# The sizes of bert-small, for gpt2-small, whose own size is the base size.
SMALL_SIZES = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}
TARGET_RATIO = 1.5  # speed-up that every family must reach
GOAL_SHARE = 0.7  # share of the speed of a plain matrix product: a goal, not a condition
TURN_SECONDS = 2.0  # approximate duration of one turn
MATRIX_SIZE = 2048  # rows and columns of the matrices that are multiplied for comparison

Step = Callable[[], float]  # one update; returns its loss
Loss = Callable[[dict[str, torch.Tensor]], torch.Tensor]  # batch -> loss


def configuration(name: str, size: int, length: int) -> Config:
    """Return the settings of a preset for batches of this shape."""
    sizes = SMALL_SIZES if name == "gpt2-small" else {}
    return replace(preset(name), batch_size=size, sequence_length=length, short_steps=0, compute_dtype=DTYPE, **sizes)


def batches(config: Config, size: int, length: int, count: int = 8) -> list[Batch]:
    """Return batches of random pieces, half of which begin a word, masked as in training: [CLS] A [SEP] B [SEP].

    For a decoder, each piece of a sequence predicts the next.
    """
    if not isinstance(config, MaskedConfig):
        return [next_tokens(config, size, length, np.random.default_rng(i)) for i in range(count)]
    rng = np.random.default_rng(0)
    special = tuple(range(MASK + 1))
    begins = (np.arange(config.vocab_size) % 2 == 1) & ~np.isin(np.arange(config.vocab_size), special)
    masking = Masking(WordStarts(begins), MASK, special, config.masked_share, config.max_ngram)
    batch_list = []
    for _ in range(count):
        ids = rng.integers(MASK + 1, config.vocab_size, (size, length))
        ids[:, 0], ids[:, length // 2], ids[:, -1] = CLS, SEP, SEP
        segments = np.broadcast_to(np.arange(length) > length // 2, ids.shape)
        batch_list.append(masking(ids, segments, np.ones_like(ids), rng.integers(0, 2, size), rng))
    return batch_list


def next_tokens(config: Config, size: int, length: int, rng: np.random.Generator) -> Batch:
    """Return random pieces for a decoder, with the next piece of each as its label."""
    tokens = rng.integers(MASK + 1, config.vocab_size, (size, length + 1), np.int32)
    ones, zeros = np.ones((size, length), np.int32), np.zeros((size, length), np.int32)
    positions = np.broadcast_to(np.arange(length, dtype=np.int32), ones.shape)
    return Batch(tokens[:, :-1], zeros, ones, positions, tokens[:, 1:], ones.astype(np.float32), zeros[:, 0], zeros)


def keras_step(config: Config, batch_list: list[Batch]) -> Step:
    """Return an update of the model that `pretrain.train` builds, with its optimizer and compiled function."""
    model = build(config)
    loss_weights = FAMILIES[config.family].loss_weights(config, 0)
    main_objective = next(iter(model.objectives))
    turn = iter(range(sys.maxsize))

    def step() -> float:
        return model.train(batch_list[next(turn) % len(batch_list)], loss_weights)[f"{main_objective}_loss"]

    return step


def torch_step(config: Config, batch_list: list[Batch]) -> Step:
    """Return an update of transformers' model, with scaled-dot-product attention and torch's AdamW."""
    torch.manual_seed(config.seed)
    model_makers = {"electra": electra_model, "albert": pair_model, "bert": pair_model, "gpt2": decoder_model}
    parameters, loss_of = model_makers[config.family](config)
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate / 10, weight_decay=config.weight_decay)
    turn = iter(range(sys.maxsize))

    def step() -> float:
        loss = loss_of(as_torch(batch_list[next(turn) % len(batch_list)]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def as_torch(batch: Batch) -> dict[str, torch.Tensor]:
    """Return the batch in transformers' form: labels of all tokens, -100 at positions that are not predicted."""
    labels = np.full(batch.ids.shape, -100)
    rows = np.broadcast_to(np.arange(len(batch.ids))[:, None], batch.positions.shape)
    is_used = batch.weights > 0
    labels[rows[is_used], batch.positions[is_used]] = batch.labels[is_used]
    arrays = {"input_ids": batch.ids, "attention_mask": batch.attention_mask, "token_type_ids": batch.token_type_ids}
    return {name: torch.from_numpy(a).long() for name, a in (arrays | {"labels": labels, "pair": batch.pair}).items()}


def transformers_model(model_class: type, settings: dict) -> torch.nn.Module:
    """Return a model of transformers with random weights, in training mode."""
    settings = {name: value for name, value in settings.items() if name not in ("architectures", "dtype")}
    return model_class(model_class.config_class(**settings, attn_implementation="sdpa")).train()


def pair_model(config: Config) -> tuple[list[torch.nn.Parameter], Loss]:
    """Return an ALBERT or a BERT: its parameters, and the sum of its two losses."""
    model_class, label = {
        "albert": (AlbertForPreTraining, "sentence_order_label"),
        "bert": (BertForPreTraining, "next_sentence_label"),
    }[config.family]
    model = transformers_model(model_class, FAMILIES[config.family].huggingface_config(config))

    def loss(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs = {name: tensor for name, tensor in batch.items() if name != "pair"}
        return model(**inputs, **{label: batch["pair"]}).loss

    return list(model.parameters()), loss


def decoder_model(config: Config) -> tuple[list[torch.nn.Parameter], Loss]:
    """Return a GPT-2: its parameters, and its loss."""
    model = transformers_model(GPT2LMHeadModel, FAMILIES["gpt2"].huggingface_config(config))

    def loss(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return model(input_ids=batch["input_ids"], labels=batch["input_ids"]).loss

    return list(model.parameters()), loss


def electra_model(config: Config) -> tuple[list[torch.nn.Parameter], Loss]:
    """Return generator and discriminator on the same embeddings: parameters, and the weighted sum of their losses."""
    settings = FAMILIES["electra"].huggingface_config(config)
    generator = transformers_model(ElectraForMaskedLM, settings | config.generator)
    discriminator = transformers_model(ElectraForPreTraining, settings)
    discriminator.electra.embeddings = generator.electra.embeddings

    def loss(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs = {name: tensor for name, tensor in batch.items() if name not in ("pair", "labels", "input_ids")}
        words = generator(input_ids=batch["input_ids"], labels=batch["labels"], **inputs)
        is_masked = batch["labels"] >= 0
        original = torch.where(is_masked, batch["labels"], batch["input_ids"])
        filled_ids = original.clone()
        filled_ids[is_masked] = torch.multinomial(words.logits[is_masked].detach().softmax(-1), 1)[:, 0]
        detection = discriminator(input_ids=filled_ids, labels=(filled_ids != original).long(), **inputs)
        return config.generator_weight * words.loss + config.discriminator_weight * detection.loss

    return list({id(p): p for part in (generator, discriminator) for p in part.parameters()}.values()), loss


def matrix_product() -> Step:
    """Return a function that multiplies two square float32 matrices with TensorFlow and returns one number."""
    import tensorflow as tf

    left, right = (tf.random.normal((MATRIX_SIZE, MATRIX_SIZE)) for _ in "ab")
    return lambda: float(tf.matmul(left, right)[0, 0])


def update_flops(config: Config, batch_list: list[Batch]) -> float:
    """Return the floating-point operations of an update: two per multiplication forward, and twice that backward."""
    size, length = batch_list[0].ids.shape
    sizes = {"hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size}
    encoders = [sizes, config.generator] if config.family == "electra" else [sizes]
    total = 0
    for encoder in encoders:
        hidden, inner = encoder["hidden_size"], encoder["intermediate_size"]
        embedding = getattr(config, "embedding_size", hidden)
        layer = 4 * hidden**2 + 2 * hidden * inner + 2 * length * hidden  # multiplications per token
        projection = embedding * hidden if embedding != hidden else 0
        total += size * length * (projection + config.num_hidden_layers * layer)
    transform = 0 if config.family == "gpt2" else hidden  # between the states and the words
    total += size * batch_list[0].positions.shape[1] * embedding * (transform + config.vocab_size)  # predictions
    if config.family == "electra":
        total += size * length * config.hidden_size**2  # the discriminator's head
    return 6.0 * total


def seconds_per_step(step: Step, steps: int) -> float:
    """Return the mean seconds of consecutive updates."""
    start = perf_counter()
    for _ in range(steps):
        step()
    return (perf_counter() - start) / steps


def compare(name: str, size: int, length: int, rounds: int) -> float:
    """Print both speeds of one preset at one shape; return our speed-up."""
    config = configuration(name, size, length)
    batch_list = batches(config, size, length)
    steps = {
        "keras": keras_step(config, batch_list),
        "torch": torch_step(config, batch_list),
        "product": matrix_product(),
    }
    turns = {}
    for label, step in steps.items():
        assert np.isfinite(step()), f"{label} does not train"  # the first update compiles
        turns[label] = max(2, round(TURN_SECONDS / seconds_per_step(step, 2)))
    seconds = [{label: seconds_per_step(step, turns[label]) for label, step in steps.items()} for _ in range(rounds)]
    median_seconds = {label: median(turn[label] for turn in seconds) for label in steps}
    ratios = [turn["torch"] / turn["keras"] for turn in seconds]
    speeds = ", ".join(f"{label} {size * length / median_seconds[label]:,.0f} tokens/s" for label in ("keras", "torch"))
    spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    print(f"{name}, {size} x {length} tokens: {speeds}; ratio {spread}")
    speed = update_flops(config, batch_list) / median_seconds["keras"] / 1e9
    product_speed = 2e-9 * MATRIX_SIZE**3 / median_seconds["product"]
    print(
        f"    {speed:.0f} GFLOP/s of the {product_speed:.0f} of a plain matrix product: {speed / product_speed:.0%} "
        f"(goal {GOAL_SHARE:.0%})"
    )
    return median(ratios)


def main() -> int:
    """Compare every family; return 1 if a speed-up is below TARGET_RATIO."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads each, {rounds} rounds in turns; ours in {DTYPE}")
    return int(min([compare(*shape, rounds) for shape in SHAPES]) < TARGET_RATIO)


if __name__ == "__main__":
    sys.exit(main())
