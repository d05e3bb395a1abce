"""Reads many recorded answers into columns, for the engines that people read tables with.

Only Arrow and Parquet need a library, pyarrow; the extra is called `batch`.
"""

from unrender.batch.audit import Audit, Loss, audit_files
from unrender.batch.failure import BatchError
from unrender.batch.job import Progress, read_files
from unrender.batch.reader import Reader
from unrender.batch.rows import Status
from unrender.batch.tally import Tally

__all__ = ["Audit", "BatchError", "Loss", "Progress", "Reader", "Status", "Tally", "audit_files", "read_files"]
