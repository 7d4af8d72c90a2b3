"""Options and files of runs that `python -m launch WAY RUNS` does not start."""

from launch import __main__ as launch
from tests.malformed import readers

RUNS = "--config micro_softmax runs/a\n--config micro_softmax gs://bucket/b\n"


def _launch(way):
    """`way` with some options, for a file of two runs."""

    def call(options, folder):
        (folder / "runs.txt").write_text(RUNS)
        readers._program(launch)(f"{way} runs.txt --dry-run {options}", folder)

    return call


def _runs(content, folder):
    """A file of runs, for SLURM."""
    path = readers._file(content, folder)
    readers._program(launch)(f"slurm {path} --dry-run", folder)


CALLS = {
    "launch": readers._program(launch),
    "launch slurm": _launch("slurm"),
    "launch jobset": _launch("jobset --image here/zoo:1 --volume work:/zoo/runs"),
    "launch jobset without a volume": _launch("jobset --image here/zoo:1"),
    "file of runs": _runs,
}
