"""Wire forms of messages, tools and media, as frozen values and back; JSON from outside, bounded."""
