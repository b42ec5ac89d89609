"""`findings` compares a run with the claims of the paper, `compare` runs with each other."""

import argparse
import json
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING

from embryo_core import runs
from embryo_core.commands.arguments import RUN, Command, add_run

if TYPE_CHECKING:
    import pandas as pd

ORDER_METRICS = ("mask_prediction", "next_word_prediction", "token_reconstruction")
ORDER_RULES = ("half", "paper")
CELL_WIDTH = 30  # characters per line of a cell: two designs fit into 100 columns


def add_findings_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `findings`: the run, and --json."""
    add_run(command)
    command.add_argument("--json", action="store_true", help="print JSON, with every comparison, interval and n")


def print_findings(options: argparse.Namespace) -> int:
    """Test every claim of the paper on the run's results, and print the verdicts."""
    from embryo_core.findings import judge

    judgements = judge(runs.open_run(options.run))
    if options.json:
        findings = [
            one.text_fields | {"comparisons": [vars(comparison) for comparison in one.comparisons]}
            for one in judgements
        ]
        print(json.dumps(findings, indent=1))
        return 0
    for judgement in judgements:
        finding = judgement.finding
        print(f"{judgement.verdict}: {finding.claim} ({finding.section})")
        print(f"    {finding.predicts}")
        if judgement.comparisons:
            print(f"    {judgement.summary}")
        if judgement.statistic:
            print(f"    {judgement.statistic}")
        if judgement.remedy:
            print(f"    run: {judgement.remedy}")
    return 0


def add_compare_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`: the runs, the metric and rule of the order of acquisition, and --json."""
    command.add_argument("runs", metavar="RUN", nargs="+", help=RUN)
    command.add_argument(
        "--metric",
        choices=ORDER_METRICS,
        default=ORDER_METRICS[0],
        help=f"metric that orders the categories (default {ORDER_METRICS[0]})",
    )
    order = "half: by the step at which half of the last value is reached (default); paper: as in its Appendix C.4"
    command.add_argument("--order", choices=ORDER_RULES, default=ORDER_RULES[0], help=order)
    command.add_argument("--json", action="store_true", help="print JSON")


def print_comparison(options: argparse.Namespace) -> int:
    """Print the runs' designs, with differing rows marked, their orders of acquisition, and the orders' agreement."""
    from embryo_core import comparison

    compared = [runs.open_run(name) for name in dict.fromkeys(options.runs)]
    order = comparison.acquisitions(compared, options.metric, comparison.PARTS_OF_SPEECH, options.order)
    tables = {"design": comparison.designs(compared), "acquisition": order, "agreement": comparison.agreements(order)}
    if options.json:
        records = {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
        print(json.dumps(records, indent=1))
        return 0
    design = tables["design"]
    design.insert(0, "≠", design.pop("differs").map({True: "≠", False: ""}))
    design.loc[design["row"] == "seed"] = design.loc[design["row"] == "seed"].map(str)
    for name, table in tables.items():
        print(f"{name}\n{_text(table)}\n")
    return 0


def _text(table: "pd.DataFrame") -> str:
    """Return a table as aligned text; long cells are wrapped to CELL_WIDTH characters."""
    if table.empty:
        return "nothing to compare: python -m embryo_core evaluate RUN computes what is missing"
    values = table.astype(object).where(table.notna(), "-").itertuples(index=False)
    rows = [[*table.columns], *([_cell(value) for value in row] for row in values)]
    cells = [[textwrap.wrap(cell, CELL_WIDTH) or [""] for cell in row] for row in rows]
    widths = [max(len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    sides = ["<" if dtype in ("object", "string") else ">" for dtype in table.dtypes]
    return "\n".join(
        "  ".join(f"{part:{side}{width}}" for part, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for row in cells
        for line in zip_longest(*row, fillvalue="")
    )


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


FINDINGS = Command(
    "findings", "show which of the paper's findings a run reproduces", add_findings_arguments, print_findings
)
COMPARE = Command(
    "compare",
    "compare the designs of runs, and the orders in which they acquire the parts of speech",
    add_compare_arguments,
    print_comparison,
)
