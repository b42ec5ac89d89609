"""`findings`: which of the paper's findings a run shows."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from embryo_core import runs
from embryo_core.commands.arguments import RUN

if TYPE_CHECKING:
    from embryo_core.findings import Judgement

HELP = "tell which of the paper's findings a run shows"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The run, and the form of the answer."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("--json", action="store_true", help="as JSON, with every comparison, its interval and its n")


def execute(options: argparse.Namespace) -> int:
    """Put every finding to the test, and print what the run says."""
    from embryo_core.findings import judge

    judgements = judge(runs.open_run(options.run))
    if options.json:
        print(json.dumps([_as_json(judgement) for judgement in judgements], indent=1))
        return 0
    for judgement in judgements:
        finding = judgement.finding
        print(f"{judgement.verdict}: {finding.claim} ({finding.place})")
        print(f"    {finding.predicts}")
        if judgement.comparisons:
            print(f"    {judgement.summary}")
        if judgement.statistic:
            print(f"    {judgement.statistic}")
        if judgement.remedy:
            print(f"    run: {judgement.remedy}")
    return 0


def _as_json(judgement: "Judgement") -> dict[str, Any]:
    finding = judgement.finding
    return {
        "name": finding.name,
        "claim": finding.claim,
        "place": finding.place,
        "predicts": finding.predicts,
        "verdict": judgement.verdict,
        "statistic": judgement.statistic,
        "remedy": judgement.remedy,
        "comparisons": [vars(comparison) for comparison in judgement.comparisons],
    }
