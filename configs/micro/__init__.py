"""The micro language, which is generated: the quickstart."""
