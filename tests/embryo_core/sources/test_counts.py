"""Tests that the counts of a byte-level RoBERTa equal those of a slow computation with transformers alone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from embryo_core import results
from embryo_core.corpora import read_treebank
from embryo_core.evaluation import evaluate
from embryo_core.sources import add
from tests.conftest import SAMPLE

SENTENCES = 12
TREEBANK = SAMPLE / "treebank.conllu"


def test_counts_equal_those_of_transformers(root, trainer_folder, byte_level, tmp_path):
    """Words are read unmasked and whole-word masked at every step; n and the number of correct words are compared."""
    folder = shutil.copytree(trainer_folder, tmp_path / "rob")
    tokenizer = AutoTokenizer.from_pretrained(byte_level)
    favour(folder / "checkpoint-20", tokenizer("of the", add_special_tokens=False).input_ids[-1])
    run = add([str(folder)], "rob").run
    evaluate(run, {"treebank": TREEBANK}, ["token_reconstruction", "mask_prediction"], limit=SENTENCES)
    for step in (0, 10, 20):
        slow = slow_counts(folder / f"checkpoint-{step}", byte_level)
        for metric in ("token_reconstruction", "mask_prediction"):
            scores = results.read_scores(run, metric)
            score = scores[(scores["step"] == step) & (scores["group"] == "all")].iloc[0]
            assert (score["n"], round(score["value"] * score["n"])) == slow[metric]
    assert slow["mask_prediction"][1] > 0  # equal counts of zero would show little


def favour(checkpoint: Path, piece: int) -> None:
    """Raise the bias of one token in a checkpoint so that it is always predicted and some words are correct."""
    tensors = load_file(checkpoint / "model.safetensors")
    tensors["lm_head.bias"][piece] += 50
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})


def slow_counts(checkpoint: Path, tokenizer_folder: Path) -> dict[str, tuple[int, int]]:
    """Return (words, correct words) of each task, computed one sentence and one word at a time."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    model = AutoModelForMaskedLM.from_pretrained(checkpoint).eval()
    counts = {"token_reconstruction": (0, 0), "mask_prediction": (0, 0)}

    def best(ids: list[int]) -> list[int]:
        with torch.inference_mode():
            return model(torch.tensor([ids])).logits[0, :, : len(tokenizer)].argmax(-1).tolist()

    for ids, spans in sentences(tokenizer):
        read = best(ids)
        for start, end in spans:
            masked = best([*ids[:start], *[tokenizer.mask_token_id] * (end - start), *ids[end:]])
            for task, pairs in (("token_reconstruction", read), ("mask_prediction", masked)):
                n, right = counts[task]
                counts[task] = n + 1, right + (pairs[start:end] == ids[start:end])
    return counts


def sentences(tokenizer) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Yield the ids of each sentence as running text, and the token span of each tagged word by character offsets."""
    for example in read_treebank(TREEBANK)[:SENTENCES]:
        encoded = tokenizer(" ".join(example.words), return_offsets_mapping=True)
        ends = [len(" ".join(example.words[: i + 1])) for i in range(len(example.words))]
        word_of = [next((i for i, end in enumerate(ends) if last <= end), None) for _, last in encoded.offset_mapping]
        spans = []
        for target in example.targets:
            at = [p for p, word in enumerate(word_of) if word == target.span1[0] and 0 < p < len(word_of) - 1]
            if at:
                spans.append((at[0], at[-1] + 1))
        yield encoded.input_ids, spans
