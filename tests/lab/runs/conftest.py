"""The small run that tests of this folder take."""

from tests.trained_run import run, trained, workdir

__all__ = ["run", "trained", "workdir"]
