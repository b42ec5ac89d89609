"""Muon (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/): Keras's, and with torch in fewer operations.

Keras updates one variable after the other, in dozens of operations each. A network that shares no layers has hundreds
of variables, and torch on a processor then spends a third of an update there, most of it around the arithmetic
(docs/benchmarks.md). Keras's own Adam updates all variables together where torch is the backend; so does this.
"""

from typing import TYPE_CHECKING

import keras
from keras import ops

if TYPE_CHECKING:
    import torch


class Muon(keras.optimizers.Muon):
    """Keras's Muon, which makes a matrix's update orthogonal in the type that the model computes in.

    Its authors compute that in bfloat16 too: the iteration brings singular values near 1 and no nearer in any type.
    """

    # One decay for all. Keras's Muon can have another for matrices, and decays the variables one by one.
    _apply_weight_decay = keras.optimizers.Optimizer._apply_weight_decay

    def zeropower_via_newtonschulz5(self, x, steps):
        """A matrix with the singular vectors of x [m, n], and singular values near 1."""
        rounded = ops.cast(x, keras.config.dtype_policy().compute_dtype)
        if keras.backend.backend() == "torch":
            found = orthogonal(rounded, steps, self.muon_a, self.muon_b, self.muon_c)
        else:
            found = super().zeropower_via_newtonschulz5(rounded, steps)
        return ops.cast(found, x.dtype)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if keras.backend.backend() != "torch":
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        import torch

        by_adamw, by_muon = [], []
        for row in zip(grads, trainable_variables, strict=True):
            (by_adamw if self._should_use_adamw(row[1]) else by_muon).append(row)
        with torch.no_grad():
            self._adamw_update(by_adamw, learning_rate)
            self._muon_update(by_muon, learning_rate)

    def _adamw_update(self, rows: list, learning_rate) -> None:
        """`_adamw_update_step` of all pairs of a gradient and its variable, with torch."""
        import torch

        gradients = [gradient for gradient, _ in rows]
        at = [self._get_variable_index(variable) for _, variable in rows]
        m, v = ([states[i].value for i in at] for states in (self.momentums, self.adam_velocities))
        step = ops.cast(self.iterations + 1, rows[0][1].dtype)
        corrected = ops.sqrt(1 - self.adam_beta_2**step) / (1 - self.adam_beta_1**step)
        torch._foreach_lerp_(m, gradients, 1 - self.adam_beta_1)
        torch._foreach_lerp_(v, torch._foreach_mul(gradients, gradients), 1 - self.adam_beta_2)
        updates = torch._foreach_mul(m, learning_rate * self.adam_lr_ratio * corrected)
        torch._foreach_div_(updates, torch._foreach_add(torch._foreach_sqrt(v), self.epsilon))
        torch._foreach_sub_([variable.value for _, variable in rows], updates)

    def _muon_update(self, rows: list, learning_rate) -> None:
        """`_muon_update_step` of all pairs of a gradient and its variable, with torch."""
        import torch

        gradients = [gradient for gradient, _ in rows]
        momentums = [self.momentums[self._get_variable_index(variable)].value for _, variable in rows]
        torch._foreach_mul_(momentums, self.momentum)
        torch._foreach_add_(momentums, gradients)
        ahead = torch._foreach_add(gradients, momentums, alpha=self.momentum) if self.nesterov else momentums
        for (_, variable), update in zip(rows, ahead, strict=True):
            found = self.zeropower_via_newtonschulz5(update, self.ns_steps)
            variable.value.sub_(self.lr_adjust(learning_rate * found))


def orthogonal(x: "torch.Tensor", steps: int, a: float, b: float, c: float) -> "torch.Tensor":
    """A matrix with the singular vectors of x [m, n], and singular values near 1, by Newton and Schulz's iteration.

    A step makes a s + b s^3 + c s^5 of each singular value s: x = a x + (b x x' + c (x x')^2) x, in three products.
    """
    import torch

    wide = x if x.shape[0] <= x.shape[1] else x.T
    wide = wide / (torch.linalg.norm(wide) + 1e-7)  # no singular value is above 1
    for _ in range(steps):
        squared = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(squared, squared, squared, beta=b, alpha=c), wide, beta=a)
    return wide if x.shape[0] <= x.shape[1] else wide.T
