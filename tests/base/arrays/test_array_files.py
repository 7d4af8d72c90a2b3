"""Arrays in files: sizes are known to be right before anything is unpacked."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from zoo.base.arrays import array_files


def header(shape, dtype="<i8"):
    file = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def packed(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def refused(path, message, names=("a", "b")):
    """What is refused takes no more memory than its file."""
    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        array_files.read_arrays(path, names.__contains__)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_arrays_are_read_as_numpy_writes_them(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.array("text"), "c": np.zeros(0, np.float32)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    arrays_read = array_files.read_arrays(tmp_path / "a.npz", arrays.__contains__)
    assert {*arrays_read} == {*arrays}
    for name, array in arrays.items():
        np.testing.assert_array_equal(arrays_read[name], array)
        assert arrays_read[name].dtype == array.dtype


def test_nothing_is_unpacked_of_an_archive_with_another_array(tmp_path):
    zeros = header((10**7,)) + bytes(8 * 10**7)
    path = packed(tmp_path / "a.npz", a=header((1,)) + bytes(8), other=zeros)
    refused(path, "it has 'other', which does not belong there")


def test_nothing_is_unpacked_of_an_archive_that_would_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "_BYTES", 10**6)
    path = packed(tmp_path / "a.npz", a=header((10**6,)) + bytes(8 * 10**6))
    refused(path, "and would unpack to 8,000,")


@pytest.mark.parametrize("shape", [(10**12,), (2,), (-1,), (2**62, 8), (1, 1, 2)])
def test_a_header_of_another_size_is_refused(tmp_path, shape):
    refused(packed(tmp_path / "a.npz", a=header(shape) + bytes(8)), "a has .* its header is of")


def test_objects_and_two_arrays_of_one_name_are_refused(tmp_path):
    refused(packed(tmp_path / "a.npz", a=header((1,), "|O") + bytes(8)), "objects, not numbers")
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(tmp_path / "b.npz", "w") as archive,
    ):
        for _ in range(2):
            archive.writestr("a.npy", header((1,)) + bytes(8))
    refused(tmp_path / "b.npz", "two arrays with the same name")


def test_offsets_by_hand():
    lengths = np.array([2, 0, 3], np.uint8)
    offsets = array_files.offsets(lengths, 5, "lengths", "words")
    assert offsets.tolist() == [0, 2, 2, 5] and offsets.dtype == np.int64
    assert array_files.offsets(np.zeros(0, int), 0, "lengths", "words").tolist() == [0]


@pytest.mark.parametrize(
    "lengths",
    [
        np.array([2, 2]),
        np.array([6, -1]),
        np.array([2**62] * 4 + [5]),  # 2^64 + 5
        np.array([2**63, 2**63, 5], np.uint64),
        np.array([2**64 - 1, 6], np.uint64),
        np.array([255, 6], np.uint8),  # 5, if it wrapped at 8 bits
        np.array([-128, -128, 127, 127, 7], np.int8),
    ],
)
def test_lengths_of_another_array_are_refused_though_their_sum_wraps(lengths):
    with pytest.raises(ValueError, match="lengths do not add up to words"):
        array_files.offsets(lengths, 5, "lengths", "words")


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.uint32, np.int8, np.uint8])
def test_offsets_that_fall_are_refused_in_every_type(kind):
    array_files.check_offsets(np.array([0, 0, 3, 127], kind), "offsets")
    with pytest.raises(ValueError, match="offsets has 2 at 3: offsets start at 0 and never fall"):
        array_files.check_offsets(np.array([0, 0, 3, 2], kind), "offsets")
    with pytest.raises(ValueError, match="offsets has 1 at 0"):
        array_files.check_offsets(np.array([1, 2], kind), "offsets")


@pytest.mark.parametrize("dtype", ["|V4", ">i4", "<f16", "<c8", [("a", "<i4")]])
def test_what_is_no_number_of_this_machine_is_refused(tmp_path, dtype):
    (tmp_path / "a.npy").write_bytes(header((1,), dtype) + bytes(np.dtype(dtype).itemsize))
    with pytest.raises(ValueError, match=r"a\.npy is not an array of numbers"):
        array_files.map_array(tmp_path / "a.npy")


@pytest.mark.filterwarnings("ignore:Reading `.npy`")  # one with 1L, of Python 2
def test_a_damaged_header_is_a_value_error(tmp_path):
    content, random = header((9,)) + bytes(72), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for place in random.integers(0, 70, random.integers(1, 4)):
            damaged[place] = random.choice([*b"()[]{},'\"\\019L<>|ifOUV :\n", 0, 200, 255])
        (tmp_path / "a.npy").write_bytes(damaged)
        try:
            array_files.map_array(tmp_path / "a.npy")
        except ValueError as error:
            assert str(error)
