"""Hand-made results of fine-tuning, for tests of what is displayed."""

from embryo_core import results
from embryo_core.measurements import Findings, SpanAnswer, TaskAnswer, TaskScore, TuningPoint
from embryo_core.types import Run
from tests.conftest import checkpoint_at

GOLD = "1101"  # labels of four examples
ANSWERS = {0: "0101", 8: "1100", 16: "1101"}  # by step


SPANS = {
    0: (0, 0, 0.0, 0.0),
    8: (0, 3, 0.0, 0.5),
    16: (4, 7, 1.0, 1.0),
}  # start, end, exact match and F1 of every question


def store_tuning(run: Run, task: str, sha256: str = "0" * 64, labels: tuple[str, ...] = ()) -> None:
    """Write the answers of one seed at three steps, with their accuracy; the majority baseline is 0.75."""
    name, identity = _begin(run, task, sha256, labels)
    for step, answers in ANSWERS.items():
        right = sum(answer == gold for answer, gold in zip(answers, GOLD, strict=True)) / len(GOLD)
        scores = {"model": right, "majority": 0.75}
        results.write(
            checkpoint_at(run, step),
            name,
            Findings(
                task_scores=[TaskScore(task, 1, one, "accuracy", value, len(GOLD)) for one, value in scores.items()],
                tuning=[TuningPoint(task, 1, update, 0.7 / update, right) for update in (1, 2)],
                answers=[
                    TaskAnswer(task, 1, i, float(gold), float(answer))
                    for i, (gold, answer) in enumerate(zip(GOLD, answers, strict=True))
                ],
            ),
            identity,
        )


def store_questions(run: Run, sha256: str = "0" * 64) -> None:
    """Write the answers of one seed to four questions of SQuAD 1.1 at three steps."""
    name, identity = _begin(run, "squad", sha256, ())
    for step, (start, end, exact, f1) in SPANS.items():
        scores = {("model", "f1"): f1, ("model", "exact"): exact, ("no answer", "f1"): 0.0, ("no answer", "exact"): 0.0}
        results.write(
            checkpoint_at(run, step),
            name,
            Findings(
                task_scores=[TaskScore("squad", 1, *of, value, 4) for of, value in scores.items()],
                tuning=[TuningPoint("squad", 1, 1, 4.0, f1)],
                spans=[SpanAnswer("squad", 1, f"q{i}", start, end, exact, f1) for i in range(4)],
            ),
            identity,
        )


def _begin(run: Run, task: str, sha256: str, labels: tuple[str, ...]) -> tuple[str, results.DatasetId]:
    name, identity = f"finetuning:{task}:1", {"data": task, "sha256": sha256, "limit": None, "protocol": "quick"}
    results.note_dataset(run, name, identity, {"note": "four examples", "labels": list(labels)})
    return name, identity
