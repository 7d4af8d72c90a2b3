"""Batch rows by hand, and what holds of them whatever the text; buckets of pairs."""

import dataclasses
import itertools

import numpy as np
import pytest

from zoo.data.batches import (
    Batches,
    BucketedPairs,
    PairedText,
    RandomWindows,
    batch_count,
    bucket_of,
    choose_shapes,
    equal_windows,
    fit,
    source_batch,
)
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError

# Sentences 1 2 | 3 | 4 5 6 with the boundary 0 after each, which is not counted.
TEXT = EncodedText(
    words=np.array([1, 2, 0, 3, 0, 4, 5, 6, 0], np.int32),
    counted=np.array([1, 1, 0, 1, 0, 1, 1, 1, 0], bool),
    starts=np.array([0, 3, 5]),
    known=np.ones(9, bool),
)


def all_of(batches, field):
    """A field of all batches side by side, as lists."""
    return np.concatenate(
        [getattr(b, field) for b in map(batches.__getitem__, range(len(batches)))], 1
    )


def check(batches, expected):
    for field, rows in expected.items():
        np.testing.assert_array_equal(all_of(batches, field), rows, err_msg=field)


def test_carried_rows_by_hand():
    batches = Batches(TEXT, batch=2, length=3, state="carried", boundary=0)
    assert len(batches) == 2
    expected = {
        "targets": [[1, 2, 0, 3, 0, 0], [4, 5, 6, 0, 0, 0]],
        # The second batch row starts from the word before it in the text.
        "words": [[0, 1, 2, 0, 3, 0], [0, 4, 5, 6, 0, 0]],
        "trained": [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]],
        "reset": np.zeros((2, 6)),
        "positions": [[0, 1, 2, 3, 4, -1], [5, 6, 7, 8, -1, -1]],
    }
    check(batches, expected)
    first = batches[0]
    assert (first.words.dtype, first.targets.dtype) == (np.int32, np.int32)
    assert first.trained.dtype == np.float32


def test_a_row_restarts_with_the_word_before_it():
    plain = Batches(TEXT, batch=2, length=3, state="carried", boundary=0)
    shapes = []

    def restarts(shape):
        shapes.append(shape)
        return np.array([[False, True], [True, False]])

    batches = Batches(TEXT, 2, 3, "carried", 0, restarts=restarts)
    assert shapes == [(2, 2)]  # batches, batch rows
    check(batches, {"reset": [[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]]})
    check(batches, {name: all_of(plain, name) for name in ("words", "targets", "positions")})
    np.testing.assert_array_equal(batches.part(1, slice(0, 1)).reset, [[1, 0, 0]])


def test_a_row_starts_from_the_word_before_it():
    batches = Batches(TEXT, batch=3, length=3, state="carried", boundary=0)
    check(batches, {"words": [[0, 1, 2], [0, 3, 0], [4, 5, 6]]})


def test_without_a_boundary_the_first_word_is_context_only():
    batches = Batches(TEXT, batch=1, length=4, state="carried", boundary=None)
    check(batches, {"words": [[1, 2, 0, 3, 0, 4, 5, 6]], "targets": [[2, 0, 3, 0, 4, 5, 6, 0]]})


def test_sentence_rows_by_hand():
    batches = Batches(TEXT, batch=2, length=2, state="sentences", boundary=0)
    expected = {
        # Each sentence goes to the batch row that is shortest so far.
        "targets": [[1, 2, 0, 0, 0, 0], [3, 0, 4, 5, 6, 0]],
        "words": [[0, 1, 2, 0, 0, 0], [0, 3, 0, 4, 5, 6]],
        "trained": [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]],
        "reset": [[1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0]],
    }
    check(batches, expected)


def test_the_state_is_carried_within_an_item():
    items = np.array([0, 3])  # of the first sentence, and of the two others
    batches = Batches(dataclasses.replace(TEXT, items=items), 1, 3, "items", 0)
    check(batches, {"words": [[0, 1, 2, 0, 3, 0, 4, 5, 6]], "reset": [[1, 0, 0, 1, 0, 0, 0, 0, 0]]})
    plain = Batches(TEXT, 1, 3, "items", 0)  # each sentence is an item
    check(plain, {"reset": [[1, 0, 0, 1, 0, 1, 0, 0, 0]]})


@pytest.mark.parametrize("state", ["carried", "sentences"])
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("length", [1, 4, 50])
def test_every_position_appears_once(random, state, batch, length):
    lengths = random.integers(1, 9, size=13)
    words = random.integers(1, 30, size=lengths.sum()).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    words[starts[1:] - 1] = 0
    text = EncodedText(words, np.ones(len(words), bool), words != 0, starts, words % 3 > 0)
    batches = Batches(text, batch, length, state, 0)
    order = random.permutation(len(batches))  # whichever batch was taken before
    batches = {index: batches[index] for index in order}
    counts = np.zeros(len(words), int)
    previous = np.concatenate([[0], words[:-1]])
    for index in range(len(batches)):
        batch_of = batches[index]
        real = batch_of.positions >= 0
        places = batch_of.positions[real]
        np.add.at(counts, places, 1)
        np.testing.assert_array_equal(batch_of.targets[real], words[places])
        np.testing.assert_array_equal(batch_of.words[real], previous[places])
        np.testing.assert_array_equal(batch_of.trained[real], words[places] % 3 > 0)
        assert not batch_of.trained[~real].any() and not batch_of.reset[~real].any()
        is_start = np.isin(places, starts) if state == "sentences" else np.zeros(len(places))
        np.testing.assert_array_equal(batch_of.reset[real], is_start)
    np.testing.assert_array_equal(counts, 1)
    # Within a batch row the text runs on, also from batch to batch.
    for row in all_of(batches, "positions"):
        row = row[row >= 0]
        jumps = np.flatnonzero(np.diff(row) != 1) + 1
        assert len(jumps) == 0 or (state == "sentences" and np.isin(row[jumps], starts).all())


@pytest.mark.parametrize("batch", [1, 2, 5, 64])
def test_sentences_go_where_it_is_narrowest(random, batch):
    """Each goes to the first of the narrowest rows; against a search of all rows."""
    for sentences in (0, 1, 7, 200):
        lengths = random.integers(1, 6, size=sentences)  # many batch rows are as narrow as others
        starts = np.cumsum(lengths) - lengths
        words = np.zeros(lengths.sum(), np.int32)
        text = EncodedText(words, words == 0, words == 0, starts)
        rows = [[] for _ in range(batch)]
        for start, length in zip(starts, lengths, strict=True):
            min(rows, key=len).extend(range(start, start + length))
        batches = Batches(text, batch, 4, "sentences", 0)
        assert len(batches) == -(-max(map(len, rows)) // 4)
        for batch_row, row in enumerate(rows):
            positions = np.concatenate(
                [np.zeros(0, int), *(batches[i].positions[batch_row] for i in range(len(batches)))]
            )
            assert positions[positions >= 0].tolist() == row


@pytest.mark.parametrize(
    ("state", "boundary"), [("carried", 0), ("carried", None), ("sentences", 0)]
)
def test_batches_are_counted_without_laying_them_out(random, state, boundary):
    for sentences, batch in ((1, 1), (9, 2), (50, 3), (51, 64)):
        lengths = random.integers(1, 9, size=sentences)
        words = np.ones(lengths.sum(), np.int32)
        text = EncodedText(words, words == 1, words == 1, np.cumsum(lengths) - lengths)
        order = random.permutation(sentences)
        for length in (1, 4, 50):
            batches = Batches(text.reordered(order), batch, length, state, boundary)
            count = batch_count(text.lengths[order], batch, length, state, boundary)
            assert count == len(batches)


@pytest.mark.parametrize(
    ("lengths", "shape"),
    [
        ([], (1, 16)),
        ([9], (1, 16)),
        ([17, 3], (4, 32)),
        ([5] * 5, (16, 16)),
        ([70] * 20, (20, 64)),
        ([1] * 21, (20, 64)),
    ],
)
def test_few_sentences_have_a_row_each_in_few_shapes(lengths, shape):
    """Of 20 rows of 64 columns: by powers of 4 and of 2, from 16 columns on."""
    assert fit(np.array(lengths, int), 20, 64) == shape


def test_what_cannot_be_laid_out_is_refused():
    with pytest.raises(UserError, match="'words' is not known: give carried or items or"):
        Batches(TEXT, 2, 3, "words", 0)
    with pytest.raises(UserError, match=r"set vocabulary.boundary to counted or uncounted"):
        Batches(TEXT, 2, 3, "sentences", None)
    with pytest.raises(IndexError):
        Batches(TEXT, 2, 3, "carried", 0)[2]


def test_reordered_sentences():
    reordered = TEXT.reordered(np.array([2, 0, 1]))
    assert reordered.words.tolist() == [4, 5, 6, 0, 1, 2, 0, 3, 0]
    assert reordered.counted.tolist() == [True, True, True, False, True, True, False, True, False]
    assert reordered.starts.tolist() == [0, 4, 7]
    resampled = TEXT.reordered(np.array([1, 1, 0, 1, 2, 2]))  # longer than the text itself
    assert resampled.words.tolist() == [3, 0, 3, 0, 1, 2, 0, 3, 0, 4, 5, 6, 0, 4, 5, 6, 0]
    assert resampled.starts.tolist() == [0, 2, 4, 7, 9, 13]


# ------------------------------------------------------------ windows of random length


def test_lengths_follow_the_recipe():
    windows = RandomWindows(deviation=5, half=0.25)
    lengths = np.diff(windows.starts(300_000, 70, np.random.default_rng(0)))
    assert (lengths % 5 == 0).all() and (lengths >= 5).all()
    halves = lengths < 53
    assert abs(halves.mean() - 0.25) < 0.03
    assert abs(lengths[~halves].mean() - 70) < 0.5 and abs(lengths[halves].mean() - 35) < 1
    assert 4.5 < lengths[~halves].std() < 6  # 5 drawn, and rounding adds some


def test_windows_cover_a_row_once():
    starts = RandomWindows().starts(1_001, 35, np.random.default_rng(1))
    assert starts[0] == 0 and starts[-2] < 1_001 <= starts[-1]
    np.testing.assert_array_equal(equal_windows(7, 3), [0, 3, 6, 9])
    np.testing.assert_array_equal(equal_windows(6, 3), [0, 3, 6])


def test_batches_of_windows_have_each_word_once():
    words = np.arange(1, 402, dtype=np.int32)
    text = EncodedText(words, np.ones(401, bool), np.array([0]), np.ones(401, bool))

    def starts(width):
        return RandomWindows(half=0.3).starts(width, 20, np.random.default_rng(3))

    batches = Batches(text, 2, 20, "carried", 0, starts)
    assert len(batches) == batch_count(text.lengths, 2, 20, "carried", 0, starts) > 5
    parts = [batches[number] for number in range(len(batches))]
    assert len({part.words.shape[1] for part in parts}) > 2
    positions = np.concatenate([part.positions for part in parts], axis=1)
    np.testing.assert_array_equal(np.sort(positions[positions >= 0]), np.arange(401))
    assert all(part.targets.shape == part.words.shape for part in parts)


def test_impossible_windows_are_refused():
    with pytest.raises(UserError, match="half is 1"):
        RandomWindows(half=1.0)
    with pytest.raises(UserError, match="deviation"):
        RandomWindows(deviation=-1.0)


# ---- buckets of pairs: what a batch holds, in three orders; the fewest shapes; each pair once

BOUNDARY = 1


def encoded(sentences):
    lengths = [len(sentence) for sentence in sentences]
    words = np.array([word for sentence in sentences for word in sentence], np.int32)
    everything = np.ones(len(words), bool)
    return EncodedText(words, everything, everything, np.cumsum([0, *lengths[:-1]]))


def paired(pairs, order="forward"):
    sources, targets = zip(*pairs, strict=True)
    targets = [[*target, BOUNDARY] for target in targets]
    return PairedText(encoded(sources), encoded(targets), BOUNDARY, 1, order)


def random_pairs(random, count=37):
    lengths = random.integers(1, 12, size=(count, 2))
    return [tuple(random.integers(2, 9, size=n).tolist() for n in sides) for sides in lengths]


PAIRS = [([2, 3, 4], [5, 6]), ([7], [8, 9, 10])]


def test_a_batch_has_sources_padded_on_the_left_and_targets_after_the_boundary():
    batch = paired(PAIRS).batch(np.array([1, 0, -1]), (4, 5))
    np.testing.assert_array_equal(batch.source, [[0, 0, 0, 7], [0, 2, 3, 4], [0, 0, 0, 0]])
    np.testing.assert_array_equal(batch.lengths, [1, 3, 1])
    np.testing.assert_array_equal(batch.words, [[1, 8, 9, 10, 0], [1, 5, 6, 0, 0], [0] * 5])
    np.testing.assert_array_equal(batch.targets, [[8, 9, 10, 1, 0], [5, 6, 1, 0, 0], [0] * 5])
    np.testing.assert_array_equal(batch.trained, [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [0] * 5])
    np.testing.assert_array_equal(
        batch.positions, [[3, 4, 5, 6, -1], [0, 1, 2, -1, -1], [-1, -1, -1, -1, -1]]
    )
    assert {array.dtype for array in batch[:4]} == {np.dtype(np.int32)}


def test_orders_turn_one_side_round_and_leave_the_boundary_at_the_end():
    reversed_source = paired(PAIRS, "source_reversed").batch(np.array([0]), (4, 3))
    np.testing.assert_array_equal(reversed_source.source, [[0, 4, 3, 2]])
    np.testing.assert_array_equal(reversed_source.targets, [[5, 6, 1]])
    reversed_target = paired(PAIRS, "target_reversed").batch(np.array([1]), (1, 5))
    np.testing.assert_array_equal(reversed_target.source, [[7]])
    np.testing.assert_array_equal(reversed_target.targets, [[10, 9, 8, 1, 0]])
    np.testing.assert_array_equal(reversed_target.words, [[1, 10, 9, 8, 0]])
    # Where in the text, which stands as it was written.
    np.testing.assert_array_equal(reversed_target.positions, [[5, 4, 3, 6, -1]])


def test_sources_alone_are_laid_out_as_in_batches(random):
    pairs = random_pairs(random)
    text = paired(pairs)
    batch = text.batch(np.array([4, 9, -1]), (13, 13))
    words, lengths = source_batch([pairs[4][0], pairs[9][0]], longest=13, rows=3)
    np.testing.assert_array_equal(words, batch.source)
    np.testing.assert_array_equal(lengths, batch.lengths)


def test_pairs_go_to_the_first_shape_that_both_sides_fit():
    lengths = np.array([[1, 1], [2, 3], [3, 1], [1, 4], [3, 5], [6, 6], [4, 1]])
    assert bucket_of(lengths, [(2, 3), (3, 5), (6, 6)]).tolist() == [0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("padding", [0.5, 0.35, 0.3, 0.25])
def test_the_fewest_shapes_are_chosen(random, padding):
    lengths = random.integers(1, 7, size=(40, 2))
    lengths[:, 1] = np.clip(lengths[:, 0] + random.integers(-1, 2, size=40), 1, 7)
    shapes_chosen = choose_shapes(lengths, 3, padding)

    def share(shapes):
        counts = np.bincount(bucket_of(lengths, shapes), minlength=len(shapes))
        return 1 - lengths.sum() / sum(
            -(-n // 3) * 3 * sum(shape) for n, shape in zip(counts, shapes, strict=True)
        )

    # All that could be: one shape at each share of the pairs, and some of them.
    levels = np.quantile(lengths, np.linspace(0, 1, 65)[1:], axis=0, method="higher")
    candidates = [tuple(map(int, shape)) for shape in np.unique(levels, axis=0)]
    shares = {
        count: min(
            share([*chosen, candidates[-1]])
            for chosen in itertools.combinations(candidates[:-1], count - 1)
        )
        for count in range(1, 6)
    }
    fewest = next(count for count, smallest in shares.items() if smallest <= padding)
    assert len(shapes_chosen) == fewest
    assert share(shapes_chosen) == pytest.approx(shares[fewest])


def test_where_so_little_padding_cannot_be_had_the_least_is(random):
    lengths = random.integers(1, 12, size=(200, 2))
    shapes = choose_shapes(lengths, 4, 0.0)
    assert 2 <= len(shapes) <= 16
    assert shapes == sorted(shapes)
    assert shapes[-1] == tuple(lengths.max(axis=0))


def epoch_batches(pairs, seed):
    """All batches of an epoch."""
    batches = pairs.epoch(None if seed is None else np.random.default_rng(seed))
    return [batches[index] for index in range(len(batches))]


@pytest.mark.parametrize("seed", [None, (0, 1)])
def test_an_epoch_has_every_target_once(random, seed):
    text = paired(random_pairs(random))
    pairs = BucketedPairs(text, 4, 0.3)
    batches = epoch_batches(pairs, seed)
    assert len(batches) == pairs.steps
    places = np.concatenate([batch.positions[batch.positions >= 0] for batch in batches])
    np.testing.assert_array_equal(np.sort(places), np.arange(len(text.target.words)))
    assert pairs.tokens == sum(batch.trained.sum() for batch in batches) == len(places)
    words = len(text.source.words) + len(places)
    positions = sum(batch.source.size + batch.targets.size for batch in batches)
    assert pairs.padding == pytest.approx(1 - words / positions)
    assert {batch.source.shape[1] for batch in batches} <= {shape[0] for shape in pairs.shapes}


def test_the_same_epoch_has_the_same_batches_and_another_has_others(random):
    pairs = BucketedPairs(paired(random_pairs(random)), 4, 0.3)
    first, repeated, next_epoch = (epoch_batches(pairs, seed) for seed in ((3, 0), (3, 0), (3, 1)))
    for batch, repeated_batch in zip(first, repeated, strict=True):
        for array, repeated_array in zip(batch, repeated_batch, strict=True):
            np.testing.assert_array_equal(array, repeated_array)
    order, repeated_array = (
        np.concatenate([b.positions.ravel() for b in epoch]) for epoch in (first, next_epoch)
    )
    assert not np.array_equal(order[order >= 0], repeated_array[repeated_array >= 0])
    batches = pairs.epoch(np.random.default_rng((3, 0)))
    for index in (3, 0, 2):
        np.testing.assert_array_equal(batches[index].source, first[index].source)
    with pytest.raises(IndexError):
        batches[len(batches)]


def test_pairs_that_are_too_long_are_left_out_and_counted():
    text = paired([([2] * 5, [3]), ([2], [3] * 5), ([2] * 4, [3] * 4), ([2], [3])])
    pairs = BucketedPairs(text, 2, 0.9, longest=4)
    assert pairs.dropped == 2
    np.testing.assert_array_equal(pairs.pairs, [2, 3])
    assert pairs.tokens == 7
    with pytest.raises(UserError, match=r"longest=1: all 1 pairs are longer"):
        BucketedPairs(paired([([2, 3], [4])]), 2, 0.5, longest=1)
