"""The Overview, audit: what is wrong with checkpoints of the run, and what to do."""

import streamlit as st

from app import results
from embryo_core.errors import EmbryoError
from embryo_core.figures import markdown
from embryo_core.types import Run
from embryo_core.words import quantity

SHOWN = 20  # faults that are listed; the command lists them all


def show(run: Run) -> None:
    """Draw what the last audit found; nothing where there was none, or it found nothing."""
    try:
        audit = results.audit(run)
    except EmbryoError as error:
        st.warning(markdown.literal(str(error)), icon=":material/warning:")
        return
    if not audit or not audit.faults:
        return
    count = len(audit.faults)
    named = f"The audit found {quantity(count, 'fault')} in this run's checkpoints; curves break there."
    with st.expander(named, icon=":material/warning:"):
        lines = [f"- {markdown.literal(fault.what)}" for fault in audit.faults[:SHOWN]]
        st.markdown("\n".join([*lines, f"- … and {count - SHOWN:,} more"] if count > SHOWN else lines))
        st.caption("To repeat the audit and list all faults:")
        st.code(f"python -m embryo_core audit {run.name}", "bash", wrap_lines=True)
