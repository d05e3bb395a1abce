"""The release, for whoever has to name it."""

__version__ = "0.3.0"
