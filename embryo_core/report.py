"""Answers and traces as text for the terminal."""

from embryo_core import query, runs
from embryo_core.model_cache import MODELS
from embryo_core.trace import Course, trace
from embryo_core.types import Prediction, Run


def report_answers(run: Run, text: str, step: int, k: int = 10) -> str:
    """What one checkpoint answers: the best joint answers where there are several masks, then the best for each mask.

    Raises QueryError, UnknownStep, BrokenCheckpoint.
    """
    text = query.normalise(text)
    model = MODELS.get(runs.checkpoint(run, step))
    reply = query.ask(model, query.read_question(text, model.tokenizer, model.max_positions))
    by_mask = query.predictions(reply, model.tokenizer, k)
    blocks = [f"{run.name}, step {step:,}: {text}"]
    if len(by_mask) > 1:
        blocks.append("All masks together\n" + _ranking(query.joint_predictions(reply, model.tokenizer, k)))
    for i, predictions in enumerate(by_mask, start=1):
        title = f"[MASK] {i}, given the best answer before it\n" if len(by_mask) > 1 else ""
        blocks.append(title + _ranking(predictions))
    return "\n\n".join(blocks)


def report_trace(run: Run, text: str) -> str:
    """The best answer at every checkpoint, and how the final answer fared; errors as for `trace`."""
    found = trace(run, text)
    blocks = [f"{run.name}, {len(found.steps)} checkpoints: {found.text}", *found.skipped]
    courses = [("All masks together\n", found.joint)] if found.joint else []
    courses += [(f"[MASK] {i}\n" if found.joint else "", course) for i, course in enumerate(found.masks, start=1)]
    return "\n\n".join([*blocks, *(title + _history(found.steps, course) for title, course in courses)])


def _ranking(predictions: list[Prediction]) -> str:
    lines = [f"{'rank':>4}  {'probability':>11}  answer"]
    lines += [f"{p.rank:>4}  {p.probability:>11.4%}  {p.token}" for p in predictions]
    return "\n".join(lines)


def _history(steps: tuple[int, ...], course: Course) -> str:
    by_token = {candidate.token: candidate for candidate in course.candidates}
    final = by_token[course.leaders[-1]]
    width = max(len("best answer"), *map(len, course.leaders))
    lines = [f"{'step':>9}  {'best answer':<{width}}  {'probability':>11}  {f'of {final.token!r}':>14}  {'rank':>6}"]
    for i, (step, leader) in enumerate(zip(steps, course.leaders, strict=True)):
        rank = f"> {query.BEAM}" if final.ranks[i] is None else f"{final.ranks[i]:,}"
        probability = by_token[leader].probabilities[i]
        lines.append(f"{step:>9,}  {leader:<{width}}  {probability:>11.4%}  {final.probabilities[i]:>14.4%}  {rank:>6}")
    lines.append(f"{final.token!r} first leads at step {course.first_led:,}, for good from step {course.leads_from:,}.")
    return "\n".join(lines)
