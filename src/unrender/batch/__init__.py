"""Recorded answers, many at a time → what they mean, in columns: for the engines that people read tables with.

Only Arrow and Parquet need a library, pyarrow; the extra is called `batch`.
"""

from unrender.batch.reader import Reader
from unrender.batch.rows import Status

__all__ = ["Reader", "Status"]
