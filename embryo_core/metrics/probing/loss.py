"""The loss of probes and its gradient, written out: the engine's fast product has no autograd."""

from torch import Tensor


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of each probe in nats, [p], and its gradient with respect to the logits, [b, p, K].

    Logits [b, p, K] are those of p probes for the same b targets, labels [b, p] int64. The gradient is the
    probabilities less 1 at the true label, over b.
    """
    labels = labels[..., None]
    log_probabilities = logits.log_softmax(-1)
    loss = -log_probabilities.gather(2, labels).mean((0, 2))
    errors = log_probabilities.exp_().scatter_add_(2, labels, log_probabilities.new_full(labels.shape, -1))
    return loss, errors.div_(len(logits))
