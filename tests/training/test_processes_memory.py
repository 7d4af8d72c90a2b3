"""No process of several ever holds a whole table: at the start, in training, validation and saving,
and when a run is resumed."""

import sys

import pytest

from benchmarks import processes_memory

WORDS, COUNT, NARROW, WIDE = 60_001, 4, 16, 208


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_wider_tables_add_no_more_than_a_process_has_of_them(tmp_path):
    processes_memory.write_texts(tmp_path, WORDS)
    peaks = {}
    for width in (NARROW, WIDE):
        for until in (3, 6):
            run = processes_memory.Run(tmp_path, width, COUNT, COUNT, until, devices=COUNT)
            peaks[width, until] = run.peaks()
    # Embedding, softmax and their sums of squares: a process's share of all four is one table.
    table = 4 * WORDS * (WIDE - NARROW)
    for until in (3, 6):
        for phase in processes_memory.PHASES[1:]:
            added = peaks[WIDE, until][phase] - peaks[NARROW, until][phase]
            assert added < 1.5 * table, (until, phase)
