"""Buckets of pairs: what a batch holds, in three orders; the fewest shapes; each pair once."""

import itertools

import numpy as np
import pytest

from zoo.data.batches import BucketedPairs, PairedText, bucket_of, choose_shapes, source_batch
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError

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
    return [tuple(random.integers(2, 9, size=n).tolist() for n in both) for both in lengths]


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
    of_source = paired(PAIRS, "source_reversed").batch(np.array([0]), (4, 3))
    np.testing.assert_array_equal(of_source.source, [[0, 4, 3, 2]])
    np.testing.assert_array_equal(of_source.targets, [[5, 6, 1]])
    of_target = paired(PAIRS, "target_reversed").batch(np.array([1]), (1, 5))
    np.testing.assert_array_equal(of_target.source, [[7]])
    np.testing.assert_array_equal(of_target.targets, [[10, 9, 8, 1, 0]])
    np.testing.assert_array_equal(of_target.words, [[1, 10, 9, 8, 0]])
    # Where in the text, which stands as it was written.
    np.testing.assert_array_equal(of_target.positions, [[5, 4, 3, 6, -1]])


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
    found = choose_shapes(lengths, 3, padding)

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
    fewest = next(count for count, least in shares.items() if least <= padding)
    assert len(found) == fewest
    assert share(found) == pytest.approx(shares[fewest])


def test_where_so_little_padding_cannot_be_had_the_least_is(random):
    lengths = random.integers(1, 12, size=(200, 2))
    shapes = choose_shapes(lengths, 4, 0.0)
    assert 2 <= len(shapes) <= 16
    assert shapes == sorted(shapes)
    assert shapes[-1] == tuple(lengths.max(axis=0))


def taken(pairs, seed):
    """All batches of an epoch."""
    batches = pairs.epoch(None if seed is None else np.random.default_rng(seed))
    return [batches[index] for index in range(len(batches))]


@pytest.mark.parametrize("seed", [None, (0, 1)])
def test_an_epoch_has_every_target_once(random, seed):
    text = paired(random_pairs(random))
    pairs = BucketedPairs(text, 4, 0.3)
    batches = taken(pairs, seed)
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
    first, again, other = (taken(pairs, seed) for seed in ((3, 0), (3, 0), (3, 1)))
    for one, same in zip(first, again, strict=True):
        for array, its in zip(one, same, strict=True):
            np.testing.assert_array_equal(array, its)
    order, its = (np.concatenate([b.positions.ravel() for b in epoch]) for epoch in (first, other))
    assert not np.array_equal(order[order >= 0], its[its >= 0])
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
