"""Reads text into events, messages and deltas."""
