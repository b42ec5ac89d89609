"""The dashboard: pages that pick what to look at, and show it. Only this package imports Streamlit."""
