"""Rendering of turns: text, markdown, JSON."""
