"""`compare`: runs side by side, their designs, their orders of acquisition, and how far these agree."""

import argparse
import json
from typing import TYPE_CHECKING

from embryo_core import runs
from embryo_core.commands.arguments import RUN

if TYPE_CHECKING:
    import pandas as pd

HELP = "compare the designs of runs, and in which order they acquire the parts of speech"
METRICS = ("mask_prediction", "token_reconstruction")
ORDERS = ("half", "paper")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The runs, the scores that tell the order, and the form of the answer."""
    command.add_argument("runs", metavar="RUN", nargs="+", help=RUN)
    command.add_argument("--metric", choices=METRICS, default=METRICS[0], help=f"default {METRICS[0]}")
    words = "what comes first: by half of the last value (default), or as in Appendix C.4 of the paper"
    command.add_argument("--order", choices=ORDERS, default=ORDERS[0], help=words)
    command.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the three tables; rows of the design that differ are marked."""
    from embryo_core import compare

    compared = [runs.open_run(name) for name in dict.fromkeys(options.runs)]
    order = compare.acquisitions(compared, options.metric, compare.PARTS_OF_SPEECH, options.order)
    tables = {
        "design": compare.designs(compared),
        "acquisition": order,
        "agreement": compare.agreements(order),
    }
    if options.json:
        print(json.dumps({name: _records(table) for name, table in tables.items()}, indent=1))
        return 0
    design = tables["design"].assign(differs=tables["design"]["differs"].map({True: "differs", False: ""}))
    for name, table in (tables | {"design": design}).items():
        print(f"{name}\n{_text(table)}\n")
    return 0


def _text(table: "pd.DataFrame") -> str:
    """A table as it is printed; what is not known is "-", in columns of numbers and of text."""
    if table.empty:
        return "nothing to compare: python -m embryo_core evaluate RUN computes what is missing"
    others = table.select_dtypes(exclude="float").astype(object)  # na_rep is for float columns alone
    return table.assign(**others.where(others.notna(), "-")).to_string(index=False, na_rep="-")


def _records(table: "pd.DataFrame") -> list[dict[str, object]]:
    return json.loads(table.to_json(orient="records"))
