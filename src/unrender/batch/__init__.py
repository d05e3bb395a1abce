"""Parses recorded answers in bulk into columns, for dataframe libraries and data engines.

Input: tables in batches (`columns`). Output: the same rows, each with its parsed message. Open `reader` first: it parses a batch row by row
(`rows`).

Rules: no row raises. A row that can't be read gets a status and a reason. The data engine manages files and processes.
"""

from unrender.batch.reader import Reader
from unrender.batch.rows import Status
from unrender.conversation.salvage import detect_format, rescue

__all__ = ["Reader", "Status", "detect_format", "rescue"]
