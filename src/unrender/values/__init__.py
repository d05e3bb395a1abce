"""One value of a call: its notation, how it is written, how it is read as it streams, and what its schema makes of it."""
