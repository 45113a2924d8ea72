"""The trace of a live host: spool files, and Parquet segments made of them."""
