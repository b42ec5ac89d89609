"""Peers of our training: models of transformers and torch's AdamW, from our checkpoints and on our batches."""

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import (
    AlbertForPreTraining,
    BertForPreTraining,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    GPT2LMHeadModel,
)

from pretrain.config import Config
from pretrain.masking import DRAWS, Batch

Tensors = dict[str, torch.Tensor]
Weights = dict[tuple[str, str], np.ndarray]  # by folder inside a checkpoint ("" for the checkpoint itself) and by name


class PairPeer(torch.nn.Module):
    """ALBERT or BERT, which learns masked words and the relation of two segments."""

    def __init__(self, folder: Path, config: Config):
        super().__init__()
        kind, self.pairs = {
            "albert": (AlbertForPreTraining, "sentence_order"),
            "bert": (BertForPreTraining, "next_sentence"),
        }[config.family]
        self.model = kind.from_pretrained(folder)
        self.loss_weights = {"masked_lm": 1.0, self.pairs: 1.0}
        self.parts = {"": self.model}  # by folder inside a checkpoint

    def forward(self, batch: Tensors) -> Tensors:
        """Return the mean loss of each objective."""
        words, pairs = self.model(**text(batch, batch["ids"])).to_tuple()
        logits = words[masked_indices(batch)]
        return {"masked_lm": cross_entropy(logits, words_of(batch)), self.pairs: cross_entropy(pairs, batch["pair"])}


class ElectraPeer(torch.nn.Module):
    """ELECTRA: a generator and a discriminator that reads its samples, with shared embeddings."""

    def __init__(self, folder: Path, config: Config):
        super().__init__()
        self.generator = ElectraForMaskedLM.from_pretrained(folder / "generator")
        self.discriminator = ElectraForPreTraining.from_pretrained(folder)
        self.discriminator.electra.embeddings = self.generator.electra.embeddings
        self.loss_weights = {"masked_lm": 1.0, "replaced_token": 50.0}  # Clark et al., Section 3.2
        self.parts = {"": self.discriminator, "generator": self.generator}

    def forward(self, batch: Tensors) -> Tensors:
        """Return the mean loss of each objective; no gradient flows through the samples."""
        words = self.generator(**text(batch, batch["ids"])).logits[masked_indices(batch)]
        cumulative = words.detach().double().softmax(-1).cumsum(-1)
        chances = batch["draws"][batch["weights"] > 0].double()[:, None] / DRAWS
        samples = torch.searchsorted(cumulative, chances, right=True)[:, 0]
        original, filled = batch["ids"].clone(), batch["ids"].clone()
        original[masked_indices(batch)], filled[masked_indices(batch)] = words_of(batch), samples
        detection = self.discriminator(**text(batch, filled), labels=(filled != original).long())
        return {"masked_lm": cross_entropy(words, words_of(batch)), "replaced_token": detection.loss}


class CausalPeer(torch.nn.Module):
    """GPT-2, which learns the next token."""

    def __init__(self, folder: Path, config: Config):
        super().__init__()
        self.model = GPT2LMHeadModel.from_pretrained(folder)
        self.loss_weights = {"next_token": 1.0}
        self.parts = {"": self.model}

    def forward(self, batch: Tensors) -> Tensors:
        """Return the mean loss of the next token."""
        logits = self.model(batch["ids"], attention_mask=batch["attention_mask"]).logits
        return {"next_token": cross_entropy(logits[batch["weights"] > 0], words_of(batch))}


PEERS = {"albert": PairPeer, "bert": PairPeer, "electra": ElectraPeer, "gpt2": CausalPeer}


def text(batch: Tensors, ids: torch.Tensor) -> Tensors:
    """Return the inputs of an encoder, with these token ids."""
    return {"input_ids": ids, "attention_mask": batch["attention_mask"], "token_type_ids": batch["token_type_ids"]}


def masked_indices(batch: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows and columns of the masked positions."""
    rows, predictions = torch.nonzero(batch["weights"], as_tuple=True)
    return rows, batch["positions"][rows, predictions]


def words_of(batch: Tensors) -> torch.Tensor:
    """Return the original tokens at the positions to be predicted."""
    return batch["labels"][batch["weights"] > 0]


class Peer:
    """A model of transformers that starts from the weights of our checkpoint and is trained with torch's AdamW."""

    def __init__(self, folder: Path, config: Config):
        self.config = config
        self.model = PEERS[config.family](folder, config).eval()  # no dropout
        every = list(self.model.parameters())
        kernels, others = [p for p in every if p.ndim > 1], [p for p in every if p.ndim == 1]  # biases and layer norms
        groups = [{"params": kernels, "decay": config.weight_decay}, {"params": others, "decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, betas=(config.beta_1, config.beta_2))

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Make an update; return the loss of each objective and, as "norm", that of all gradients before clipping."""
        losses = self.model({name: torch.from_numpy(array).long() for name, array in vars(batch).items()})
        self.optimizer.zero_grad()
        sum(self.model.loss_weights[name] * loss for name, loss in losses.items()).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        rate = self.rate(step)
        if self.config.optimizer == "lamb":
            self.adapted_step(step, rate)
        else:
            self.adamw_step(step, rate)
        return {name: loss.item() for name, loss in losses.items()} | {"norm": norm.item()}

    def rate(self, step: int) -> float:
        """Return the learning rate of a step: linear warm-up, then linear decay to zero."""
        config = self.config
        if step < config.warmup_steps:
            return config.learning_rate * (step + 1) / config.warmup_steps
        return config.learning_rate * (1 - step / config.steps)

    def adamw_step(self, step: int, rate: float) -> None:
        """Make torch's AdamW step without its bias correction, which the original optimizers do not have.

        torch divides the first moment by 1 - b1^t and the second by 1 - b2^t.
        """
        first, second = 1 - self.config.beta_1 ** (step + 1), np.sqrt(1 - self.config.beta_2 ** (step + 1))
        for group in self.optimizer.param_groups:
            group["lr"] = rate * first / second
            group["eps"] = self.config.epsilon / second
            group["weight_decay"] = group["decay"] * second / first
        self.optimizer.step()

    def adapted_step(self, step: int, rate: float) -> None:
        """Make a step of LAMB: every matrix moves by `rate` times its norm, in the direction of AdamW's step."""
        parameters = list(self.model.parameters())
        before = [p.detach().clone() for p in parameters]
        self.adamw_step(step, rate=1.0)
        with torch.no_grad():
            for p, old in zip(parameters, before, strict=True):
                change = p - old
                ratio = old.norm() / change.norm() if p.ndim > 1 else 1.0
                p.copy_(old + rate * ratio * change)

    def weights(self) -> Weights:
        """Return every current weight, tied ones once."""
        return {
            (folder, name): p.detach().numpy()
            for folder, part in self.model.parts.items()
            for name, p in part.named_parameters()
        }
