"""Render results as text, JSON and Markdown. Nothing is computed here."""
