"""The notebook runs from its first cell to its last, and its outputs are the committed ones."""

import ast
import copy

import pytest

pytest.importorskip("nbclient")

from tests import notebook


def test_every_cell_of_code_was_executed_in_order():
    cells = [cell for cell in notebook.read().cells if cell.cell_type == "code"]
    assert 8 <= len(cells) <= 12
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert "error" not in kinds
    assert "image/png" in cells[-1].outputs[-1].data
    for cell in cells:
        ast.parse(cell.source)
        assert max(map(len, cell.source.splitlines())) <= 100
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]


def test_outputs_of_another_kind_are_found():
    saved_notebook = notebook.read()
    shortened_notebook = copy.deepcopy(saved_notebook)
    assert notebook.kinds(shortened_notebook) == notebook.kinds(saved_notebook)
    shortened_notebook.cells[-1].outputs.pop()
    assert notebook.kinds(shortened_notebook) != notebook.kinds(saved_notebook)


@pytest.mark.slow
def test_it_shows_what_it_is_kept_with(tmp_path):
    executed_notebook = notebook.executed(tmp_path)  # raises CellExecutionError where a cell does
    assert notebook.kinds(executed_notebook) == notebook.kinds(notebook.read())
    assert (tmp_path / "treebank" / "log_linear" / "metrics.jsonl").exists()
