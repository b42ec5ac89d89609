"""Results of a fine-tuning, made by hand, for tests of what is shown."""

from embryo_core import results
from embryo_core.types import Answer, Findings, Run, TaskScore, TuningPoint
from tests.conftest import at

GOLD = "1101"  # labels of four examples
ANSWERS = {0: "0101", 8: "1100", 16: "1101"}  # by step


def store_tuning(run: Run, task: str) -> None:
    """Write what one seed answered at three steps, which scores in accuracy; the majority scores 0.75."""
    name, identity = f"finetuning:{task}:1", {"data": task, "sha256": "0" * 64, "limit": None, "protocol": "quick"}
    results.begin(run, name, identity, {"note": "four examples"}, overwrite=False)
    for step, answers in ANSWERS.items():
        right = sum(answer == gold for answer, gold in zip(answers, GOLD, strict=True)) / len(GOLD)
        scores = {"model": right, "majority": 0.75}
        results.write(
            at(run, step),
            name,
            Findings(
                task_scores=[TaskScore(task, 1, one, "accuracy", value, len(GOLD)) for one, value in scores.items()],
                tuning=[TuningPoint(task, 1, update, 0.7 / update, right) for update in (1, 2)],
                answers=[
                    Answer(task, 1, i, float(gold), float(answer))
                    for i, (gold, answer) in enumerate(zip(GOLD, answers, strict=True))
                ],
            ),
            identity,
        )
