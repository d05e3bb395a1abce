"""Defines the error that ends a job over files: bad files, dead workers, another job's leftovers; never an answer."""

from unrender import UnrenderError


class BatchError(UnrenderError):
    """Files cannot be read or written, or a worker died; the message names which, and what to do."""
