"""The figures of each page: functions that read the results of runs and return a `Figure`.

Each raises FigureError if there is nothing to draw, and ResultsError or BrokenRun if stored results or the log of a run
cannot be read.
"""
