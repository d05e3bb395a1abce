"""Reads many recorded answers into columns, for the engines that people read tables with.

In: batches of tables (`columns`), or files (`files`). Out: the same rows with the message that each answer means, or the
losses of a server (`audit`). Open `reader` first: it reads a batch, row by row, and counts (`rows`). `job` reads files by it
in several processes, and writes one file (`sinks`).

Rules: no row raises, one that cannot be read is said to be so. Memory does not grow with the input. What an interrupted job has
written is never lost and never doubled.

Only Arrow and Parquet need a library, pyarrow; the extra is called `batch`.
"""

from unrender.batch.audit import Audit, Loss, audit_files
from unrender.batch.job import Progress, read_files
from unrender.batch.reader import Reader
from unrender.batch.rows import Status, Tally
from unrender.outputs import BatchError

__all__ = ["Audit", "BatchError", "Loss", "Progress", "Reader", "Status", "Tally", "audit_files", "read_files"]
