"""The notebook in examples/, executed in a kernel of its own.

    python -m tests.notebook

writes its outputs anew.
"""

import os
import pathlib
import re
import tempfile

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[1]
FILE = ROOT / "examples" / "treebank.ipynb"


def read() -> nbformat.NotebookNode:
    """The notebook with the outputs that it is kept with."""
    return nbformat.read(FILE, as_version=4)


def executed(folder: pathlib.Path) -> nbformat.NotebookNode:
    """The notebook with new outputs; its files go into the folder."""
    notebook = read()
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,  # a bar leaves its last state
        record_timing=False,
    )
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    client.execute(env={**os.environ, "PYTHONPATH": path})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":  # the place of a bar that is gone
                output.text = re.sub(r"[ \r]+$", "", output.text, flags=re.MULTILINE)
    return notebook


def kinds(notebook: nbformat.NotebookNode) -> list[list[tuple]]:
    """The outputs of each cell: their types and texts, without what differs between machines,
    which are numbers, the checkpoints that were best, and the blanks before them."""
    return [[_kind(output) for output in cell.get("outputs", [])] for cell in notebook.cells]


def _kind(output):
    data = output.get("data", {"text/plain": output.get("text", "")})
    text = re.sub(r" \(best\)", "", data.get("text/plain", ""))
    text = re.sub(r"-?\d[\d,.]*", "#", text)
    return output.output_type, sorted(data), " ".join(text.split())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(pathlib.Path(folder)), FILE)
