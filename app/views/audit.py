"""What the last audit of the run found, on the Overview."""

import streamlit as st

from app.captions import markdown
from embryo_core import runs
from embryo_core.types import Run

SHOWN = 20  # faults that are listed; the command lists them all


def show(run: Run) -> None:
    """Draw the faults of the run's checkpoints; nothing where it was not audited, or none was found."""
    faults = runs.read_audit(run)
    if not faults:
        return
    with st.expander(f"The audit found {len(faults)} faults in this run's checkpoints.", icon=":material/warning:"):
        lines = [f"- step {fault.step:,}: {markdown.literal(fault.what)}" for fault in faults[:SHOWN]]
        st.markdown("\n".join(lines))
        st.caption(f"To look again: `python -m embryo_core audit {markdown.literal(run.name)}`")
