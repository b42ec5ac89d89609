"""Fine-tune a whole checkpoint with a new head on one task, with the models of transformers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel

from embryo_core import runs
from embryo_core.engine.capabilities import is_decoder
from embryo_core.engine.device import multiplies_bfloat16
from embryo_core.engine.hub_cache import fetch_checkpoint
from embryo_core.engine.tensor_files import read_finite
from embryo_core.engine.transformers_models import check_all_read, read_configuration
from embryo_core.errors import BrokenCheckpoint, MissingCapability
from embryo_core.finetune.encoded_tasks import EncodedTask
from embryo_core.finetune.sequences import Sequences, batches_by_length, training_batches
from embryo_core.finetune.task_specs import TuningSettings
from embryo_core.measurements import TuningPoint
from embryo_core.types import Checkpoint

# Values of optimization.py of google-research/albert, whose Adam, unlike this one, has no bias correction.
WEIGHT_DECAY = 0.01  # except for biases and normalisation
EPSILON = 1e-6  # Adam's epsilon
MAX_NORM = 1.0  # the gradients' norm is clipped to this
EVALUATION_BATCH = 128  # sequences
MODEL_CLASSES = {
    "classes": transformers.AutoModelForSequenceClassification,
    "value": transformers.AutoModelForSequenceClassification,
    "span": transformers.AutoModelForQuestionAnswering,
}
HEAD_NAMES = {"classes": "classification", "value": "classification", "span": "question-answering"}
FUSED_ACTIVATIONS = {"gelu_new": "gelu_pytorch_tanh"}  # the same function in one kernel instead of eight

# name prefixes of the configuration's dropout settings for heads
HEAD_PREFIXES = ("classif", "cls", "head", "pooler", "qa", "seq_classif", "summary")

Weights = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class TunedModel:
    """The result of fine-tuning: outputs for the validation sequences, training curve, and the encoder's weights."""

    outputs: np.ndarray
    curve: list[TuningPoint]
    encoder: Weights


def tune(
    checkpoint: Checkpoint,
    task: EncodedTask,
    settings: TuningSettings,
    seed: int,
    device: str = "cpu",
    start: Weights | None = None,
) -> TunedModel:
    """Fine-tune a checkpoint, its encoder starting from weights `start` if given, and evaluate it after every epoch.

    The seed determines the initial head, dropout and batches. Raises ArithmeticError if the loss is not finite.
    """
    torch.manual_seed(seed)
    model = _load_model(checkpoint, task, settings, torch.device(device), start)
    optimizer, schedule = _optimizer(model, settings)
    batches = training_batches(task.train.lengths, settings.batch, np.random.default_rng(seed))
    epoch = -(-len(task.train) // settings.batch)
    curve, losses = [], []
    model.train()
    for update, rows in zip(range(1, settings.updates + 1), batches, strict=False):
        loss = _loss(model, task, rows)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if update % epoch == 0 or update == settings.updates:
            outputs, mean = predict(model, task), torch.stack(losses).mean().item()
            if not np.isfinite(mean):
                raise ArithmeticError(
                    f"the training loss was not finite up to update {update}; choose smaller learning rates"
                )
            curve.append(TuningPoint(task.name, seed, update, mean, task.score(outputs)))
            losses.clear()
    encoder = {name: value.cpu() for name, value in model.base_model.state_dict().items()}
    return TunedModel(outputs, curve, encoder)


@torch.inference_mode()
def predict(model: PreTrainedModel, task: EncodedTask) -> np.ndarray:
    """Return outputs [m, outputs] float32 for the validation sequences; for spans logits [m, 2, L], -inf at padding.

    Unlike training, prediction runs in float32: rounding to bfloat16 would make different answers equal.
    """
    model.eval()
    sequences = task.validation
    shape = (len(sequences), 2, sequences.lengths.max()) if task.kind == "span" else (len(sequences), task.output_count)
    outputs = np.full(shape, -np.inf, np.float32)
    for rows in batches_by_length(sequences.lengths, EVALUATION_BATCH):
        logits = _forward(model, sequences, rows, task.kind).cpu().numpy()
        outputs[(rows, ..., slice(logits.shape[-1]))] = logits
    model.train()
    return outputs


# === The model ===


def _load_model(
    checkpoint: Checkpoint, task: EncodedTask, settings: TuningSettings, device: torch.device, start: Weights | None
) -> PreTrainedModel:
    """Load the model in float32 with a new head. Raises BrokenCheckpoint, MissingWeights and MissingCapability."""
    fetch_checkpoint(checkpoint)
    runs.verify(checkpoint)
    config = read_configuration(checkpoint)
    config.num_labels = task.output_count
    if is_decoder(runs.read_config(checkpoint, runs.ModelClass)):
        config.pad_token_id = _padding(task, config.vocab_size)
    activation = getattr(config, "hidden_act", None)
    if activation in FUSED_ACTIVATIONS:
        config.hidden_act = FUSED_ACTIVATIONS[activation]
    _set_dropout_of_functions(config, settings)
    transformers.logging.set_verbosity_error()  # silences the warning about the new head
    transformers.logging.disable_progress_bar()
    tensors = read_finite(checkpoint)
    model_and_report: Any = _model_class(config, task.kind).from_pretrained(
        None,
        config=config,
        state_dict=tensors,
        dtype=torch.float32,
        # SDPA in bfloat16 is slow on a CPU.
        attn_implementation="eager" if device.type == "cpu" and _in_bfloat16(device) else None,
        output_loading_info=True,
    )
    model, report = model_and_report
    encoder = f"{model.base_model_prefix}."
    if missing := sorted(name for name in report["missing_keys"] if name.startswith(encoder) and "pooler" not in name):
        names = ", ".join(missing[:3])
        raise BrokenCheckpoint(f"{checkpoint.path} lacks weights of its encoder ({names}); leave out this step.")
    check_all_read(checkpoint, model, tensors, report["unexpected_keys"])
    _set_dropout_of_modules(model, settings)
    if start is not None:
        model.base_model.load_state_dict(start)
    return model.to(device)


def _padding(task: EncodedTask, pieces: int) -> int:
    """Return the padding id, by which a decoder's head finds the last piece; if None, an id that ends no sequence."""
    if task.train.pad_id is not None:
        return task.train.pad_id
    lasts = [sequences.ids[sequences.ends[1:] - 1] for sequences in (task.train, task.validation)]
    return int(np.setdiff1d(np.arange(pieces), np.concatenate(lasts))[-1])


def _model_class(config: transformers.PreTrainedConfig, head_type: str) -> type[PreTrainedModel]:
    """Return the family's model class with a head for this kind of prediction. Raises MissingCapability."""
    mapping: Any = MODEL_CLASSES[head_type]._model_mapping
    try:
        return mapping[type(config)]
    except KeyError:
        raise MissingCapability(
            f"family '{config.model_type}' has no {HEAD_NAMES[head_type]} head in transformers."
        ) from None


def _set_dropout_of_functions(config: transformers.PreTrainedConfig, settings: TuningSettings) -> None:
    """Set every dropout probability of the configuration, which models read there for functional dropout."""
    for name, value in config.to_dict().items():
        if "dropout" in name and isinstance(value, int | float | None) and not isinstance(value, bool):
            setattr(config, name, settings.classifier_dropout if name.startswith(HEAD_PREFIXES) else settings.dropout)


def _set_dropout_of_modules(model: PreTrainedModel, settings: TuningSettings) -> None:
    """Set dropout in the modules of encoder and head, since some families mix the two settings or ignore the head's."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            is_encoder = name.startswith(f"{model.base_model_prefix}.")
            module.p = settings.dropout if is_encoder else settings.classifier_dropout


def _optimizer(
    model: nn.Module, settings: TuningSettings
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Return AdamW and its learning-rate schedule: linear warm-up, then linear decay to 0."""
    vectors = [value for value in model.parameters() if value.ndim < 2]  # biases and normalisation
    matrices = [value for value in model.parameters() if value.ndim >= 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, settings.learning_rate, eps=EPSILON, fused=True)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, settings.warmup, settings.updates)
    return optimizer, schedule


# === Passes ===


def _in_bfloat16(device: torch.device) -> bool:
    """Return whether to train in bfloat16: on GPUs that support it, and on CPUs on which it is clearly faster."""
    return torch.cuda.is_bf16_supported() if device.type == "cuda" else device.type == "cpu" and multiplies_bfloat16()


def _forward(model: PreTrainedModel, sequences: Sequences, rows: np.ndarray, head_type: str) -> Tensor:
    """Return outputs [B, outputs]; for spans, logits [B, 2, L] of the first and last piece, -inf at padding."""
    device = model.device
    ids, segments, mask = (torch.from_numpy(array).to(device) for array in sequences.batch(rows))
    if sequences.pad_id is None:
        ids = ids.masked_fill(mask == 0, model.config.pad_token_id)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if getattr(model.config, "type_vocab_size", 0) > 1:  # RoBERTa has one segment, DistilBERT none
        inputs["token_type_ids"] = segments
    outputs = model(**inputs)
    if head_type != "span":
        return outputs.logits
    logits = torch.stack([outputs.start_logits, outputs.end_logits], 1)
    return logits.masked_fill(mask[:, None] == 0, -torch.inf)


def _loss(model: PreTrainedModel, task: EncodedTask, rows: np.ndarray) -> Tensor:
    """Return the mean training loss of a batch: cross-entropy, or squared error for a value."""
    with torch.autocast(model.device.type, torch.bfloat16, enabled=_in_bfloat16(model.device)):
        outputs = _forward(model, task.train, rows, task.kind).float()
    targets = torch.from_numpy(task.targets[rows]).to(outputs.device)
    if task.kind == "value":
        return nn.functional.mse_loss(outputs[:, 0], targets.float())
    if task.kind == "span":
        return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
    return nn.functional.cross_entropy(outputs, targets)
