"""The release, for whoever has to name it."""

__version__ = "0.2.0"
