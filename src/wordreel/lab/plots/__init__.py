"""Charts as SVG text, drawn by matplotlib (the `plots` extra): the same bytes for the same data.

`available()` says whether charts can be drawn; the bins need only NumPy.
"""

from wordreel.hubness.measures import log_edges, occurrence_edges
from wordreel.lab.plots.charts import Series, bar_chart, histogram, line_chart, occurrence_chart
from wordreel.lab.plots.svg import PlotsMissing, available

__all__ = [
    "PlotsMissing",
    "Series",
    "available",
    "bar_chart",
    "histogram",
    "line_chart",
    "log_edges",
    "occurrence_chart",
    "occurrence_edges",
]
