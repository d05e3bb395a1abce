"""Makes of findings a Format that holds."""
