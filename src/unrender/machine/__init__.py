"""Runs a program over text that arrives in pieces; events, policy and ids, the vocabulary that it speaks."""
