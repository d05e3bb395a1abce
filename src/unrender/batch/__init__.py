"""Reads many recorded answers into columns, for the engines that people read tables with.

In: batches of tables (`columns`). Out: the same rows with the message that each answer means. Open `reader` first: it reads a
batch, row by row (`rows`).

Rules: no row raises; a row that cannot be read gets a status and a reason. Files and processes are the engines' work.
"""

from unrender.batch.reader import Reader
from unrender.batch.rows import Status
from unrender.conversation.salvage import detect_format, rescue

__all__ = ["Reader", "Status", "detect_format", "rescue"]
