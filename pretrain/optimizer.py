"""The optimizers: LAMB and AdamW as in the originals, Keras's AdamW and Muon, and the learning-rate schedules."""

from time import perf_counter
from typing import TYPE_CHECKING

import keras
from keras import ops

from pretrain.config import Config

if TYPE_CHECKING:
    import torch


class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay and without bias correction, with which BERT and ELECTRA were pretrained.

    For every variable w with gradient g (already clipped by the global norm):

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2        u = m / (sqrt(v) + eps) + decay w
        w = w - rate * u

    Biases and layer normalisations are not decayed. `keras.optimizers.AdamW` corrects the bias of m and v.
    """

    def __init__(self, learning_rate, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, global_clipnorm=1.0):
        super().__init__(learning_rate=learning_rate, global_clipnorm=global_clipnorm, name=type(self).__name__.lower())
        self.decay = weight_decay  # Keras's own `weight_decay` would be applied separately from the update
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables):
        """Create the two moments of every variable, and record which variables are decayed."""
        if self.built:
            return
        super().build(variables)
        self.momentums = [self.add_variable_from_reference(v, "momentum") for v in variables]
        self.velocities = [self.add_variable_from_reference(v, "velocity") for v in variables]
        self.plain = [is_bias_or_norm(v) for v in variables]
        self.decays = [self.decay if self._use_weight_decay(v) else 0.0 for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable in place."""
        index = self._get_variable_index(variable)
        momentum, velocity = self.momentums[index], self.velocities[index]
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        m = self.beta_1 * momentum + (1 - self.beta_1) * gradient
        v = self.beta_2 * velocity + (1 - self.beta_2) * ops.square(gradient)
        update = m / (ops.sqrt(v) + self.epsilon)
        if not self.plain[index]:
            update = self.adapt(update + self.decays[index] * variable, variable, m)
        self.assign(momentum, m)
        self.assign(velocity, v)
        self.assign_sub(variable, rate * update)

    def adapt(self, update, variable, momentum):
        """Return the update of a variable unchanged; subclasses scale it."""
        return update


class Lamb(AdamW):
    """Layer-wise adaptive moments (You et al., 2020), in the form with which ALBERT was pretrained.

    AdamW's update u, as above, is scaled to the norm of the variable: w = w - rate * (|w| / |u|) * u. Biases and layer
    normalisations are neither decayed nor scaled. `keras.optimizers.Lamb` corrects the bias of m and v, excludes the
    decay from the ratio and scales every variable.
    """

    def adapt(self, update, variable, momentum):
        """Return the update scaled to the norm of the variable; 0 for a variable that never had a gradient."""
        weight_norm, update_norm = ops.norm(variable), ops.norm(update)
        usable = ops.logical_and(weight_norm > 0, update_norm > 0)
        ratio = ops.where(usable, weight_norm / ops.maximum(update_norm, 1e-30), 1.0)
        # Without a gradient so far, as in a head whose loss begins later, the ratio would scale the decay up to rate x
        # w; the original does not change such a variable.
        return ops.where(ops.norm(momentum) > 0, ratio * update, 0.0)


class Muon(keras.optimizers.Muon):
    """Muon (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/), in fewer operations on torch.

    As in Keras, the orthogonalised update of a matrix [m, n] is scaled by 0.2 sqrt(max(m, n)), so that it is as large
    as one of AdamW (Liu et al., 2025, arXiv:2502.16982); Jordan et al. scale it by sqrt(max(1, outputs / inputs)).

    Keras updates one variable after the other, in dozens of operations each. A network that shares no layers has
    hundreds of variables, and torch on a CPU then spends a third of an update there, mostly on overhead
    (docs/benchmarks.md). Like Keras's Adam on torch, this optimizer updates all variables together.

    Matrix updates are orthogonalised in the model's compute dtype. The authors use bfloat16 too: in any dtype, the
    iteration brings singular values only near 1.
    """

    # One decay for all variables. Keras's Muon can have another one for matrices, and decays the variables one by one.
    _apply_weight_decay = keras.optimizers.Optimizer._apply_weight_decay

    def zeropower_via_newtonschulz5(self, x, steps):
        """Return a matrix with the singular vectors of x [m, n], and singular values near 1."""
        matrix = ops.cast(x, keras.config.dtype_policy().compute_dtype)
        if keras.backend.backend() == "torch":
            result = orthogonalize(matrix, steps, self.muon_a, self.muon_b, self.muon_c)
        else:
            result = super().zeropower_via_newtonschulz5(matrix, steps)
        return ops.cast(result, x.dtype)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if keras.backend.backend() != "torch":
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        import torch

        by_adamw: list[tuple] = []
        by_muon: list[tuple] = []
        for row in zip(grads, trainable_variables, strict=True):
            (by_adamw if self._should_use_adamw(row[1]) else by_muon).append(row)
        with torch.no_grad():
            self._adamw_update(by_adamw, learning_rate)
            self._muon_update(by_muon, learning_rate)

    def _adamw_update(self, rows: list, learning_rate) -> None:
        """Perform Keras's `_adamw_update_step` for all (gradient, variable) pairs together, with torch."""
        import torch

        gradients = [gradient for gradient, _ in rows]
        indices = [self._get_variable_index(variable) for _, variable in rows]
        m, v = ([states[i].value for i in indices] for states in (self.momentums, self.adam_velocities))
        step = ops.cast(self.iterations + 1, rows[0][1].dtype)
        correction = ops.sqrt(1 - self.adam_beta_2**step) / (1 - self.adam_beta_1**step)
        torch._foreach_lerp_(m, gradients, 1 - self.adam_beta_1)
        torch._foreach_lerp_(v, torch._foreach_mul(gradients, gradients), 1 - self.adam_beta_2)
        updates = torch._foreach_mul(m, learning_rate * self.adam_lr_ratio * correction)
        torch._foreach_div_(updates, torch._foreach_add(torch._foreach_sqrt(v), self.epsilon))
        torch._foreach_sub_([variable.value for _, variable in rows], updates)

    def _muon_update(self, rows: list, learning_rate) -> None:
        """Perform Keras's `_muon_update_step` for all (gradient, variable) pairs together, with torch."""
        import torch

        gradients = [gradient for gradient, _ in rows]
        momentums = [self.momentums[self._get_variable_index(variable)].value for _, variable in rows]
        torch._foreach_mul_(momentums, self.momentum)
        torch._foreach_add_(momentums, gradients)
        lookahead = torch._foreach_add(gradients, momentums, alpha=self.momentum) if self.nesterov else momentums
        for (_, variable), update in zip(rows, lookahead, strict=True):
            direction = self.zeropower_via_newtonschulz5(update, self.ns_steps)
            variable.value.sub_(self.lr_adjust(learning_rate * direction))


def orthogonalize(x: "torch.Tensor", steps: int, a: float, b: float, c: float) -> "torch.Tensor":
    """Return a matrix with the singular vectors of x [m, n] and singular values near 1, by Newton-Schulz iteration.

    A step maps each singular value s to a s + b s^3 + c s^5: x = a x + (b x x' + c (x x')^2) x, in three products.
    """
    import torch

    matrix = x if x.shape[0] <= x.shape[1] else x.T
    matrix = matrix / (torch.linalg.norm(matrix) + 1e-7)  # so that no singular value is above 1
    for _ in range(steps):
        product = matrix @ matrix.T
        matrix = torch.addmm(matrix, torch.addmm(product, product, product, beta=b, alpha=c), matrix, beta=a)
    return matrix if x.shape[0] <= x.shape[1] else matrix.T


# === Rate ===


@keras.saving.register_keras_serializable("embryo")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak rate; the peak until `constant_steps`; then polynomial decay to zero at `steps`.

    The first update has the rate peak / warmup_steps, so that it changes the weights. With constant_steps 0 the decay
    counts from the first update, as in the original: peak x (1 - step / steps) after the warm-up.
    """

    def __init__(self, peak: float, power: float, warmup_steps: int, constant_steps: int, steps: int):
        self.peak, self.power = peak, power
        self.warmup_steps, self.constant_steps, self.steps = warmup_steps, constant_steps, steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        warmup_factor = (step + 1) / max(self.warmup_steps, 1)
        elapsed = ops.clip((step - self.constant_steps) / max(self.steps - self.constant_steps, 1), 0.0, 1.0)
        decay_factor = ops.power(1.0 - elapsed, self.power)
        return self.peak * ops.where(step < self.warmup_steps, warmup_factor, decay_factor)

    def get_config(self):
        """Return the settings, as Keras requires of every schedule."""
        return {name: getattr(self, name) for name in ("peak", "power", "warmup_steps", "constant_steps", "steps")}


def schedule(config: Config) -> WarmupDecay:
    """Return the learning rate of a configuration as a function of the number of previous updates."""
    return WarmupDecay(
        config.learning_rate, config.decay_power, config.warmup_steps, config.constant_steps, config.steps
    )


class ClockDecay:
    """Linear warm-up by updates; then the peak, and a polynomial decay to zero that ends with the run's minutes.

    The clock counts the wall time of all processes that trained the run, compilation included.
    """

    def __init__(self, config: Config, seconds_before: float = 0.0):
        self.config, self._started = config, perf_counter() - seconds_before

    @property
    def seconds(self) -> float:
        """Return the wall time (s) for which the run has been trained."""
        return perf_counter() - self._started

    @property
    def is_over(self) -> bool:
        """Return whether the run has used up its minutes."""
        return self.seconds >= 60 * self.config.minutes

    def __call__(self, updates: int) -> float:
        """Return the learning rate at this moment, after this number of updates."""
        config = self.config
        remaining = max(0.0, config.minutes - self.seconds / 60) / (config.decay_minutes or config.minutes)
        warmup_factor = (updates + 1) / max(config.warmup_steps, 1)
        return config.learning_rate * min(1.0, warmup_factor) * min(1.0, remaining) ** config.decay_power


# === Choice ===


def is_bias_or_norm(variable) -> bool:
    """Return whether a variable is a bias or part of a layer normalisation, which are neither decayed nor scaled."""
    return "bias" in variable.path or "layer_norm" in variable.path


def optimizer(config: Config, variables: list) -> keras.optimizers.Optimizer:
    """Return the optimizer of a configuration, built for these trainable variables of the model."""
    positions = [] if config.decay_positions else [v for v in variables if "embeddings/position" in v.path]
    without_decay = [*positions, *filter(is_bias_or_norm, variables)]
    rate = config.learning_rate if config.minutes else schedule(config)  # with `minutes`, the training loop sets it
    common = {"learning_rate": rate, "epsilon": config.epsilon}
    if config.optimizer == "muon":
        result = Muon(
            adam_beta_1=config.beta_1,
            adam_beta_2=config.beta_2,
            adam_weight_decay=config.weight_decay,
            weight_decay=config.weight_decay,
            global_clipnorm=config.clip_norm,
            exclude_layers=["classifier"],  # the last layer of a head; Keras itself excludes embeddings
            **common,
        )
    else:
        optimizer_class = {"lamb": Lamb, "adamw_bert": AdamW, "adamw": keras.optimizers.AdamW}[config.optimizer]
        result = optimizer_class(
            beta_1=config.beta_1,
            beta_2=config.beta_2,
            weight_decay=config.weight_decay,
            global_clipnorm=config.clip_norm,
            **common,
        )
    result.exclude_from_weight_decay(without_decay)
    result.build(variables)
    return result
