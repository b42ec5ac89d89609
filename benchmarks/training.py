"""A training step of albert-small: this project's Keras and XLA beside transformers and torch, on the same cores.

It also says how many GFLOP/s ours reaches, and what share that is of a plain float32 matrix product in the same run.
Both train the same ALBERT in float32 on the same masked batches, in turns within one run; the ratio is between the
medians of their rounds. transformers computes logits for the whole sequence and is updated by torch's AdamW, as its own
examples do. Usage: python benchmarks/training.py [ROUNDS [THREADS]]

On cores that other programs use as well, torch's threads wait for each other and fall far behind; one thread each is
then the fairer comparison.
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
for _name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ[_name] = THREADS  # read when torch and TensorFlow are imported

import numpy as np
import torch
from transformers import AlbertConfig, AlbertForPreTraining

from pretrain.config import Config
from pretrain.families import FAMILIES, preset
from pretrain.masking import MaskedBatch, Masking
from pretrain.tokenizer import CLS, MASK, SEP, SPECIAL_TOKENS
from pretrain.train import build

SHAPES = ((16, 64), (32, 64), (8, 128))  # sequences x tokens
TARGET = 1.5
SHARE = 0.7  # of what a matrix product reaches; a goal, not a condition
SECONDS = 2.0  # of steps in one turn, about
MATRIX = 2048  # rows and columns of the matrices that are multiplied for comparison

Step = Callable[[], float]  # one update; returns its loss


def batches(config: Config, size: int, length: int, count: int = 8) -> list[MaskedBatch]:
    """Random pieces, half of which begin a word, masked as in training: [CLS] A [SEP] B [SEP]."""
    rng = np.random.default_rng(0)
    special = tuple(range(len(SPECIAL_TOKENS)))
    word_start = (np.arange(config.vocab_size) % 2 == 1) & ~np.isin(np.arange(config.vocab_size), special)
    masking = Masking(word_start, MASK, special, config.masked_share, config.max_ngram)
    made = []
    for _ in range(count):
        ids = rng.integers(len(SPECIAL_TOKENS), config.vocab_size, (size, length))
        ids[:, 0], ids[:, length // 2], ids[:, -1] = CLS, SEP, SEP
        segments = np.broadcast_to(np.arange(length) > length // 2, ids.shape)
        made.append(masking(ids, segments, np.ones_like(ids), rng.integers(0, 2, size), rng))
    return made


def keras_step(config: Config, made: list[MaskedBatch]) -> Step:
    """One update by pretrain.train's own model, LAMB and XLA."""
    model = build(config, made[0])
    loss_weights = FAMILIES[config.family].loss_weights(config, 0)
    turn = iter(range(sys.maxsize))

    def step() -> float:
        return model.train(made[next(turn) % len(made)], loss_weights)["masked_lm_loss"]

    return step


def torch_step(config: Config, made: list[MaskedBatch]) -> Step:
    """One update by transformers' AlbertForPreTraining with scaled-dot-product attention and torch's AdamW."""
    torch.manual_seed(config.seed)
    settings = FAMILIES[config.family].huggingface(config)
    settings = {name: value for name, value in settings.items() if name not in ("architectures", "dtype")}
    model = AlbertForPreTraining(AlbertConfig(**settings, attn_implementation="sdpa")).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate / 10, weight_decay=config.weight_decay)
    turn = iter(range(sys.maxsize))

    def step() -> float:
        batch = made[next(turn) % len(made)]
        labels = np.full(batch.ids.shape, -100)
        rows = np.broadcast_to(np.arange(len(batch.ids))[:, None], batch.positions.shape)
        used = batch.weights > 0
        labels[rows[used], batch.positions[used]] = batch.labels[used]
        output = model(
            input_ids=torch.from_numpy(batch.ids).long(),
            attention_mask=torch.from_numpy(batch.attention_mask),
            token_type_ids=torch.from_numpy(batch.token_type_ids).long(),
            labels=torch.from_numpy(labels),
            sentence_order_label=torch.from_numpy(batch.swapped).long(),
        )
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        return output.loss.item()

    return step


def matrix_product() -> Step:
    """One product of two square float32 matrices by TensorFlow, as plain as it gets; returns one of its numbers."""
    import tensorflow as tf

    left, right = (tf.random.normal((MATRIX, MATRIX)) for _ in "ab")
    return lambda: float(tf.matmul(left, right)[0, 0])


def update_flops(config: Config, made: list[MaskedBatch]) -> float:
    """Floating-point operations of an update: twice the multiplications forward, and twice that again backward."""
    size, length = made[0].ids.shape
    hidden, embedding = config.hidden_size, config.embedding_size
    layer = 4 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * length * hidden  # multiplications a token
    words = hidden * embedding + embedding * config.vocab_size  # a masked position
    tokens = size * length * (embedding * hidden + config.num_hidden_layers * layer)
    return 6.0 * (tokens + size * made[0].positions.shape[1] * words)


def seconds_per_step(step: Step, steps: int) -> float:
    """Mean seconds of one update over several in a row."""
    started = perf_counter()
    for _ in range(steps):
        step()
    return (perf_counter() - started) / steps


def compare(size: int, length: int, rounds: int) -> float:
    """Print both speeds at one shape; returns how many times as fast Keras is."""
    config = replace(preset("albert-small"), batch_size=size, sequence_length=length, short_steps=0)
    made = batches(config, size, length)
    steps = {"keras": keras_step(config, made), "torch": torch_step(config, made), "product": matrix_product()}
    turns = {}
    for name, step in steps.items():
        assert np.isfinite(step()), f"{name} does not train"  # the first update compiles
        turns[name] = max(2, round(SECONDS / seconds_per_step(step, 2)))
    timed = [{name: seconds_per_step(step, turns[name]) for name, step in steps.items()} for _ in range(rounds)]
    typical = {name: median(turn[name] for turn in timed) for name in steps}
    ratios = [turn["torch"] / turn["keras"] for turn in timed]
    speeds = ", ".join(f"{name} {size * length / typical[name]:,.0f} tokens/s" for name in ("keras", "torch"))
    print(f"{size} x {length} tokens: {speeds}; ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    reached, plain = update_flops(config, made) / typical["keras"] / 1e9, 2e-9 * MATRIX**3 / typical["product"]
    print(
        f"    {reached:.0f} GFLOP/s of the {plain:.0f} of a plain matrix product: {reached / plain:.0%} "
        f"(goal {SHARE:.0%})"
    )
    return median(ratios)


def main() -> int:
    """Compare at every shape; 1 where the claim does not hold."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads each, {rounds} rounds in turns")
    return int(min([compare(size, length, rounds) for size, length in SHAPES]) < TARGET)


if __name__ == "__main__":
    sys.exit(main())
