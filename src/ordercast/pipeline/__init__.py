"""The data pipeline on Spark: the only package that imports PySpark.

Without PySpark, the import of any module of this package fails here, with an error that says what to install.
"""

from importlib.util import find_spec

from ordercast.core.errors import LocalError

if find_spec("pyspark") is None:
    raise LocalError("this command needs Spark, which is not installed: pip install 'ordercast[spark]'")
