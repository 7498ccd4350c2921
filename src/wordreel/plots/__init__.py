"""Pictures of numbers as SVG text: pure functions, no dependency, the same bytes for the same data.

They take their colours from the page (`--plot-…`, see `svg.STYLE`) and follow its light or dark scheme.
"""

from wordreel.plots.bars import bar_chart
from wordreel.plots.histogram import histogram
from wordreel.plots.lines import Series, line_chart
from wordreel.plots.occurrence import occurrence_chart
from wordreel.plots.svg import STYLE

__all__ = ["STYLE", "Series", "bar_chart", "histogram", "line_chart", "occurrence_chart"]
