"""Parses recorded answers in bulk into columns, for dataframe libraries and data engines.

A `Reader` takes a mapping of columns, and returns the same columns together with those of the parsed messages. Start with `reader`, which
parses batches row by row. `rows` defines a row and its result.

Rules: invalid rows never raise an exception. A row that can't be read gets a status and a reason. Files and processes are left to the data
engine.
"""

from unrender.batch.reader import Reader
from unrender.batch.rows import Status
from unrender.conversation.salvage import detect_format, rescue

__all__ = ["Reader", "Status", "detect_format", "rescue"]
