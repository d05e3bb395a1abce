"""From text to events, messages and deltas."""
