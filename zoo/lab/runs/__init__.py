"""Runs on disk: work directories, checkpoints, exports and locks."""
