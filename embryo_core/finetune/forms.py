"""What each task of GLUE asks: its texts, its labels and its metrics, the first of which is the task's score."""

from dataclasses import dataclass

SQUAD = "squad"


def evaluation(task: str, seed: int | str) -> str:
    """The name under which the results of a task and seed are stored, one part a step."""
    return f"finetuning:{task}:{seed}"


def is_name(task: str) -> bool:
    """Whether a task can have this name: letters, digits, "_" and "-", so that no path is one."""
    return task.replace("-", "").replace("_", "").isalnum()


@dataclass(frozen=True)
class Form:
    """A task over one or two texts; a task without labels is a regression."""

    texts: tuple[str, ...]  # columns
    metrics: tuple[str, ...]
    labels: tuple[str, ...] = ("0", "1")
    keys: tuple[int | str, ...] = ()  # what the label column holds for each, where that is not 0, 1, ...
    validation: str = "validation"  # the split that it is scored on
    from_mnli: bool = False  # the paper tunes it from the checkpoint's own weights after MNLI


PAIR = ("sentence1", "sentence2")
GLUE = {  # as in the paper's Table 6; WNLI is left out, as there
    "cola": Form(("sentence",), ("matthews",), ("unacceptable", "acceptable")),
    "sst2": Form(("sentence",), ("accuracy",), ("negative", "positive")),
    "mrpc": Form(PAIR, ("f1", "accuracy"), ("not_equivalent", "equivalent"), from_mnli=True),
    "stsb": Form(PAIR, ("spearman", "pearson"), labels=(), from_mnli=True),
    "qqp": Form(("question1", "question2"), ("f1", "accuracy"), ("not_duplicate", "duplicate")),
    "mnli": Form(
        ("premise", "hypothesis"),
        ("accuracy",),
        ("entailment", "neutral", "contradiction"),
        validation="validation_matched",
    ),
    "qnli": Form(("question", "sentence"), ("accuracy",), ("entailment", "not_entailment")),
    "rte": Form(PAIR, ("accuracy",), ("entailment", "not_entailment"), from_mnli=True),
}
# Columns of a user's own task, two texts before one, each in the order of GLUE.
TEXTS = tuple(sorted(dict.fromkeys(form.texts for form in GLUE.values()), key=len, reverse=True))
