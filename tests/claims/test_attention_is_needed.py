"""The generated pairs need their encoder: how many translations are right in every word without."""

import collections
import dataclasses

import numpy as np
import pytest

import configs
from tests.lab.training import small
from zoo.data import MicroPairs
from zoo.decoding import BeamSearch
from zoo.lab.evaluation import translation_quality
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Translator

LANGUAGE = dataclasses.replace(
    MicroPairs().language, nouns=6, adjectives=3, verbs=3, places=3, test_sentences=300
)


@dataclasses.dataclass(frozen=True)
class Wrong(MicroPairs):
    """The pairs as an encoder sees them that does not do what it should.

    Attributes:
      encoder: "hides" the source, each sentence is one and the same; "mixes" sources up, each
        translation has that of another.
    """

    encoder: str = "hides"

    def read(self, split):
        corpus = super().read(split)
        sources = corpus.source_text.sentences
        if self.encoder == "hides":
            sources = [sources[0][:1]] * len(sources)
        else:
            generator = np.random.default_rng(0)
            sources = [sources[number] for number in generator.permutation(len(sources))]
        text = dataclasses.replace(corpus.source_text, sentences=sources)
        return dataclasses.replace(corpus, source_text=text)


def exact_match(data, folder, epochs):
    """The percentage of test translations that a run on the data has right, greedily."""
    recipe = dataclasses.replace(configs.load("micro_translation"), data=data)
    recipe = small.with_settings(recipe, f"training.epochs={epochs}", "model.core.size=96")
    run = Run.load(small.run_in(folder, recipe))
    corpus = run.read("test")
    translator = Translator((run,))
    nbest_lists = translator.translate(
        run.experiment.source_corpus(corpus).sentences, BeamSearch(1)
    )
    translations = [" ".join(translator.words(best)) for best, *_ in nbest_lists]
    references = [" ".join(words) for words in corpus.sentences]
    return translation_quality.figures(translations, references, "none")[
        translation_quality.EXACT_MATCH
    ].score


@pytest.mark.parametrize("data", [MicroPairs(), MicroPairs(LANGUAGE)])
def test_no_translation_is_right_of_many_sources(data):
    """So no decoder that knows no source, whatever it says, has more than so many right."""
    sentences = [" ".join(words) for words in data.read("test").sentences]
    ((_, count),) = collections.Counter(sentences).most_common(1)
    assert count / len(sentences) < 0.02


@pytest.mark.slow
def test_exact_match_is_out_of_reach_of_a_wrong_encoder(tmp_path):
    assert exact_match(MicroPairs(LANGUAGE), tmp_path / "right", 8) > 50
    for encoder in ("hides", "mixes"):
        assert exact_match(Wrong(LANGUAGE, encoder=encoder), tmp_path / encoder, 3) < 2
