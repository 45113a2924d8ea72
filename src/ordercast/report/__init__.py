"""Reports: one HTML file from the tables of a folder. Needs no Spark, only Arrow and matplotlib.

`build.report(out)` writes it. `figures` are data, `draw` makes SVG of them, `page` makes HTML of everything.
"""

from importlib.util import find_spec

from ordercast.core.errors import LocalError

if find_spec("matplotlib") is None:
    raise LocalError("this needs matplotlib, which is not installed: pip install 'ordercast[spark]'")
