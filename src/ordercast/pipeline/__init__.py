"""The data pipeline on Spark: the only package that imports PySpark.

Without PySpark, importing any module of it fails here, with a message that says what to install.
"""

from importlib.util import find_spec

from ordercast.core.errors import LocalError

if find_spec("pyspark") is None:
    raise LocalError("this needs Spark, which is not installed: pip install 'ordercast[spark]'")
