"""The figures of each page, pure functions from runs to a `Figure`.

Each raises FigureError if there is nothing to draw, and ResultsError or BrokenRun if stored results or the log of a run
cannot be read.
"""
