"""The Streamlit dashboard: pages to choose and view results. `embryo_core` and `pretrain` never import Streamlit."""
