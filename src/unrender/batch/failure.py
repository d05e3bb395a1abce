"""What ends a job over files: never an answer, always a file, a worker, or what was left by another job."""

from unrender.errors import UnrenderError


class BatchError(UnrenderError):
    """Files cannot be read or written, or a worker died; the message names which, and what to do."""
