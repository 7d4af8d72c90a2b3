"""The small run that tests of this folder take."""

from tests.trained_run import call, run, trained, workdir

__all__ = ["call", "run", "trained", "workdir"]
