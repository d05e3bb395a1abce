"""Turns a request into a turn: normalise, shape, inject, render, prefill."""
