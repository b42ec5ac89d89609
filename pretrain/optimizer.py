"""LAMB as in the original ALBERT: no bias correction, decay inside the trust ratio, biases and norms left alone."""

import keras
from keras import ops

from pretrain.config import Config


class Lamb(keras.optimizers.Optimizer):
    """Layer-wise adaptive moments (You et al., 2020), in the form with which ALBERT was pretrained.

    For every variable w with gradient g (clipped before by the global norm):

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2        u = m / (sqrt(v) + eps) + decay w
        w = w - rate * (|w| / |u|) * u

    Biases and layer normalisations get neither the decay nor the ratio. `keras.optimizers.Lamb` corrects the bias of
    m and v, keeps the decay out of the ratio and adapts every variable.
    """

    def __init__(self, learning_rate, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, clip_norm=1.0):
        super().__init__(learning_rate=learning_rate, global_clipnorm=clip_norm, name="lamb")
        self.decay = weight_decay  # Keras's own `weight_decay` would be applied outside the trust ratio
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables):
        """Make the two moments of every variable, and note which ones are decayed and adapted."""
        if self.built:
            return
        super().build(variables)
        self.momentums = [self.add_variable_from_reference(v, "momentum") for v in variables]
        self.velocities = [self.add_variable_from_reference(v, "velocity") for v in variables]
        self.adapted = [adapted(v) for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable in place."""
        index = self._get_variable_index(variable)
        momentum, velocity = self.momentums[index], self.velocities[index]
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        m = self.beta_1 * momentum + (1 - self.beta_1) * gradient
        v = self.beta_2 * velocity + (1 - self.beta_2) * ops.square(gradient)
        update = m / (ops.sqrt(v) + self.epsilon)
        if self.adapted[index]:
            update = update + self.decay * variable
            weight_norm, update_norm = ops.norm(variable), ops.norm(update)
            usable = ops.logical_and(weight_norm > 0, update_norm > 0)
            ratio = ops.where(usable, weight_norm / ops.maximum(update_norm, 1e-30), 1.0)
            update = ratio * update
        self.assign(momentum, m)
        self.assign(velocity, v)
        self.assign_sub(variable, rate * update)


def adapted(variable) -> bool:
    """Whether LAMB decays and adapts this variable: all but biases and layer normalisations."""
    return "bias" not in variable.path and "layer_norm" not in variable.path


@keras.saving.register_keras_serializable("embryo")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak rate, then polynomial decay over all steps to zero."""

    def __init__(self, config: Config):
        self.peak, self.power = config.learning_rate, config.decay_power
        self.warmup_steps, self.steps = config.warmup_steps, config.steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        warming = step / max(self.warmup_steps, 1)
        decaying = ops.power(1.0 - ops.minimum(step, self.steps) / self.steps, self.power)
        return self.peak * ops.where(step < self.warmup_steps, warming, decaying)

    def get_config(self):
        """Settings, as Keras asks of every schedule."""
        return {"peak": self.peak, "power": self.power, "warmup_steps": self.warmup_steps, "steps": self.steps}


def lamb(config: Config) -> Lamb:
    """The optimizer of a configuration."""
    return Lamb(WarmupDecay(config), weight_decay=config.weight_decay, clip_norm=config.clip_norm)
