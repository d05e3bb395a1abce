"""From a grammar to the dialects that constrain generation."""
