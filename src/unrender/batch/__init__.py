"""Parses recorded answers in bulk into columns, for dataframe libraries and data engines.

A `Reader` takes a mapping of columns, and returns it with the columns of the parsed messages. Open `reader` first: it parses a batch row by
row (`rows`).

Rules: invalid rows never raise an exception. A row that can't be read gets a status and a reason. The data engine manages files and
processes.
"""

from unrender.batch.reader import Reader
from unrender.batch.rows import Status
from unrender.conversation.salvage import detect_format, rescue

__all__ = ["Reader", "Status", "detect_format", "rescue"]
