"""Runs side by side: figures in columns, seeds in groups; as text, pictures and a page."""
