"""How a probe is trained: by Adam, under one of two protocols, and with the weights that were best in development."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Plateau:
    """What happens after so many evaluations in a row without a better F1."""

    halve: int  # from so many on, each halves the learning rate and begins Adam's moments anew
    stop: int  # after so many, training stops (patience)


@dataclass(frozen=True)
class Protocol:
    """The settings of a training; F1 in development is evaluated `evaluations` times, evenly spaced."""

    batch: int  # targets
    epochs: int
    iterations: int  # batches; or as many epochs, if these are more
    evaluations: int
    learning_rate: float  # at the beginning
    plateau: Plateau | None  # None: the learning rate falls along a line to 0 at the end
    max_norm: float  # of the gradient of a probe; a longer one is clipped
    whitened: bool

    def length(self, targets: int) -> int:
        """Iterations for so many training targets; a multiple of `evaluations`."""
        wanted = max(self.iterations, self.epochs * -(-targets // self.batch))
        return self.evaluations * -(-wanted // self.evaluations)


PROTOCOLS = {
    "fast": Protocol(
        batch=1024,
        epochs=5,
        iterations=1000,
        evaluations=10,
        learning_rate=0.03,
        plateau=None,
        max_norm=torch.inf,
        whitened=True,
    ),
    "paper": Protocol(  # https://github.com/d223302/albert-embryology, Sec-3:Edge-Probing
        batch=1024,
        epochs=0,
        iterations=30_000,
        evaluations=30,
        learning_rate=1e-4,
        plateau=Plateau(halve=5, stop=20),
        max_norm=5.0,
        whitened=False,
    ),
}


class Regimen:
    """The training of one probe, whose values (weights and bias) it changes in place."""

    def __init__(self, values: tuple[Tensor, ...], protocol: Protocol):
        self._values, self._protocol = values, protocol
        self._learning_rate = protocol.learning_rate
        self._adam = torch.optim.Adam(values, self._learning_rate, fused=True)
        self._best_f1, self._best = -1.0, values
        self._waited = 0  # evaluations since F1 was better than ever before

    @property
    def stopped(self) -> bool:
        """Whether more training would change nothing."""
        return self._protocol.plateau is not None and self._waited >= self._protocol.plateau.stop

    @property
    def best(self) -> tuple[Tensor, ...]:
        """The weights that `evaluated` kept."""
        return self._best

    def step(self, gradients: tuple[Tensor, ...], left: float) -> None:
        """One step of Adam; `left` is the share of the iterations that are left, from 1 down."""
        for value, gradient in zip(self._values, gradients, strict=True):
            value.grad = gradient
        if self._protocol.max_norm < torch.inf:
            torch.nn.utils.clip_grad_norm_(self._values, self._protocol.max_norm)
        if self._protocol.plateau is None:
            self._adam.param_groups[0]["lr"] = self._learning_rate * left
        self._adam.step()

    def evaluated(self, f1: float, weights: tuple[Tensor, ...]) -> None:
        """Take note of F1 in development with these weights, and keep them if they are the best.

        Of equal ones the fast protocol keeps the last, which has come farther, and the paper's the first.
        """
        if self.stopped:
            return
        plateau, better = self._protocol.plateau, f1 > self._best_f1
        if better or (plateau is None and f1 == self._best_f1):
            self._best_f1, self._best = f1, tuple(weight.clone() for weight in weights)
        self._waited = 0 if better else self._waited + 1
        if plateau is not None and self._waited >= plateau.halve:
            self._learning_rate /= 2
            self._adam = torch.optim.Adam(self._values, self._learning_rate, fused=True)
