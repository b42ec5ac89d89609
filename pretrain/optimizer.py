"""The optimizers: LAMB as in the original ALBERT, AdamW and Muon from Keras, and the schedule of their rate."""

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

    def __init__(
        self, learning_rate, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, clip_norm=1.0, undecayed=()
    ):
        super().__init__(learning_rate=learning_rate, global_clipnorm=clip_norm, name="lamb")
        self.decay = weight_decay  # Keras's own `weight_decay` would be applied outside the trust ratio
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.undecayed = {variable.path for variable in undecayed}  # besides biases and layer normalisations

    def build(self, variables):
        """Make the two moments of every variable, and note which ones are decayed and adapted."""
        if self.built:
            return
        super().build(variables)
        self.momentums = [self.add_variable_from_reference(v, "momentum") for v in variables]
        self.velocities = [self.add_variable_from_reference(v, "velocity") for v in variables]
        self.adapted = [not is_bias_or_norm(v) for v in variables]
        self.decays = [
            self.decay if ratio and v.path not in self.undecayed else 0.0
            for v, ratio in zip(variables, self.adapted, strict=True)
        ]

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
            update = update + self.decays[index] * variable
            weight_norm, update_norm = ops.norm(variable), ops.norm(update)
            usable = ops.logical_and(weight_norm > 0, update_norm > 0)
            ratio = ops.where(usable, weight_norm / ops.maximum(update_norm, 1e-30), 1.0)
            # Without a gradient so far, as of a head whose loss sets in later, the ratio would blow the decay up to
            # rate x w; the original leaves such a variable alone.
            update = ops.where(ops.norm(m) > 0, ratio * update, 0.0)
        self.assign(momentum, m)
        self.assign(velocity, v)
        self.assign_sub(variable, rate * update)


def is_bias_or_norm(variable) -> bool:
    """Whether the variable is a bias or part of a layer normalisation, which are neither decayed nor adapted."""
    return "bias" in variable.path or "layer_norm" in variable.path


@keras.saving.register_keras_serializable("embryo")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak rate; the peak until `constant_steps`; then polynomial decay to zero at `steps`.

    The first update has the rate peak / warmup_steps, so that it changes the weights. With constant_steps 0 the decay
    is counted from the first update, as in the original: peak x (1 - step / steps) after the warm-up.
    """

    def __init__(self, peak: float, power: float, warmup_steps: int, constant_steps: int, steps: int):
        self.peak, self.power = peak, power
        self.warmup_steps, self.constant_steps, self.steps = warmup_steps, constant_steps, steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        warming = (step + 1) / max(self.warmup_steps, 1)
        passed = ops.clip((step - self.constant_steps) / max(self.steps - self.constant_steps, 1), 0.0, 1.0)
        decaying = ops.power(1.0 - passed, self.power)
        return self.peak * ops.where(step < self.warmup_steps, warming, decaying)

    def get_config(self):
        """Settings, as Keras asks of every schedule."""
        return {name: getattr(self, name) for name in ("peak", "power", "warmup_steps", "constant_steps", "steps")}


def schedule(config: Config) -> WarmupDecay:
    """The learning rate of a configuration by the number of updates made before."""
    return WarmupDecay(
        config.learning_rate, config.decay_power, config.warmup_steps, config.constant_steps, config.steps
    )


def optimizer(config: Config, variables: list) -> keras.optimizers.Optimizer:
    """The optimizer of a configuration, built for these variables (those of the model that are trained)."""
    kept = [] if config.decay_positions else [v for v in variables if "embeddings/position" in v.path]
    rate, decay, clip = schedule(config), config.weight_decay, config.clip_norm
    if config.optimizer == "lamb":
        made = Lamb(rate, decay, config.beta_1, config.beta_2, config.epsilon, clip, undecayed=kept)
    elif config.optimizer == "adamw":
        made = keras.optimizers.AdamW(rate, decay, config.beta_1, config.beta_2, config.epsilon, global_clipnorm=clip)
    else:
        made = keras.optimizers.Muon(
            rate,
            config.beta_1,
            config.beta_2,
            decay,
            config.epsilon,
            decay,
            global_clipnorm=clip,
            exclude_layers=["classifier"],
        )
    if config.optimizer != "lamb":
        made.exclude_from_weight_decay([*kept, *filter(is_bias_or_norm, variables)])
    made.build(variables)
    return made
