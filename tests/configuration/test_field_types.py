"""Slips in a config that Python lets pass."""

import dataclasses

import pytest

from zoo import Experiment, Training, priors
from zoo.configuration.fields import check_types as check
from zoo.data import Text, Vocabulary
from zoo.errors import UserError
from zoo.heads import LogLinear, Softmax
from zoo.models import LanguageModel

TEXT = Text("a", "b", ("c",))
SLIPS = {
    "vocabulary.background is NGram: give a Background, such as Uniform, Unigram": {
        "vocabulary": Vocabulary(background=priors.NGram())
    },
    "model.head.background is Unigram: give a ContextualBackground, such as Arpa": {
        "model": LanguageModel(head=LogLinear(background=priors.Unigram()))
    },
    "vocabulary.splits is 'train', of type str: give a tuple, with a comma if": {
        "vocabulary": Vocabulary(splits="train")
    },
    "vocabulary.features is TopWords: give a tuple, with a comma if": {
        "vocabulary": Vocabulary(features=priors.TopWords(5))
    },
    "vocabulary.features.1 is Unigram: give a FeaturePrior, such as Affixes": {
        "vocabulary": Vocabulary(features=(priors.TopWords(5), priors.Unigram()))
    },
    "data.tests is ['c'], of type list: give a tuple.": {
        "data": dataclasses.replace(TEXT, tests=["c"])
    },
    "model.head is the class Softmax: give Softmax(), with parentheses": {
        "model": LanguageModel(head=Softmax)
    },
    "training.optimizer is 'Adam', of type str: give an Optimizer, such as Adagrad": {
        "training": Training(optimizer="Adam")
    },
    "training.shuffle is 1, of type int: give True or False": {"training": Training(shuffle=1)},
}


@pytest.mark.parametrize("message", SLIPS)
def test_a_slip_is_named(message):
    with pytest.raises(UserError) as caught:
        Experiment(**({"data": TEXT} | SLIPS[message]))
    assert message in str(caught.value)


@dataclasses.dataclass(frozen=True)
class Rates:
    of: tuple[tuple[str, float], ...]


def test_tuples_have_their_length():
    check(Rates((("head", 0.1), ("core", 2))), "training")
    with pytest.raises(
        UserError, match=r"^training\.of\.1 is \('core',\), .*: give a tuple of 2\.$"
    ):
        check(Rates((("head", 0.1), ("core",))), "training")


def test_what_is_right_passes():
    tuples = Training(rates=(("head", 0.1), ("core", 2)), frozen=("embedding",), average=0)
    check(Experiment(TEXT, training=tuples))
