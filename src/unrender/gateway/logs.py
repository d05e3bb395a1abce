"""Writes log records as lines of JSON on standard error: one for each request, one for each error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

REQUESTS = "unrender.gateway.requests"


class Lines(logging.Formatter):
    """Writes a record as one line of JSON: `time`, `level`, and the request's own fields or a `message`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        text = record.getMessage()
        line |= json.loads(text) if record.name == REQUESTS else {"logger": record.name, "message": text}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write(stream: Any = None) -> logging.Handler:
    """Write the gateway's log, and uvicorn's warnings, to a stream; return the handler.

    By default the stream is standard error.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines())
    for name, level in {"unrender.gateway": logging.INFO, "uvicorn": logging.WARNING}.items():
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False  # whoever set up the root would write each line again, as text
    return handler
