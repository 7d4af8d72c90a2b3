"""The names of components in saved recipes: "zoo.heads:NCE", the package that exports a class.

The table here is all that reading depends on. The file in which a class is written is not part of
its name, so files can move.
"""

import dataclasses
import importlib
import sys

# What a recipe may have in it: the classes that each package exports for it.
COMPONENTS = {
    "zoo": ("Evaluation", "Experiment", "Parallel", "Training"),
    "zoo.adaptation": ("Trained", "WithWordsOf"),
    "zoo.alignment": ("Copyable", "PositionalAll", "PositionalUnknown"),
    "zoo.attention": ("Bahdanau", "Luong"),
    "zoo.cores": ("Bidirectional", "Elman", "GRU", "LSTM", "LastWords", "NGram"),
    "zoo.data": (
        *(
            "AsPairs",
            "Buckets",
            "Characters",
            "Conllu",
            "Micro",
            "MicroPairs",
            "Mixed",
        ),
        *("Pairs", "Prefixed", "Text", "Vocabulary"),
    ),
    "zoo.papers": ("Facts", "Overnight", "Realisations"),
    "zoo.embeddings": ("CharCNN", "Concat", "Features", "Lookup"),
    "zoo.heads": (
        *("AdaptiveSoftmax", "BlackOut", "CNNSoftmax", "CharLSTM", "HierarchicalSoftmax"),
        *("HuffmanSoftmax", "ImportanceSampling", "LetterNoise", "LogLinear", "LogUniformNoise"),
        *("MixtureOfContexts", "MixtureOfSoftmaxes", "NCE", "SampledLogLinear"),
        *(
            "SelfNormalisedSoftmax",
            "Softmax",
            "SpreadUnknown",
            "UniformNoise",
            "UnigramNoise",
            "WithExpert",
        ),
    ),
    "zoo.lexicon": ("Spelling",),
    "zoo.models": ("LanguageModel", "SequenceToSequence"),
    "zoo.networks": ("Convolution",),
    "zoo.optimizers": ("Adagrad", "Adam", "Constant", "Cosine", "Decay", "RMSProp", "SGD"),
    "zoo.priors": (
        *("Affixes", "Arpa", "DigitStrings", "Evidence", "Grammar", "KnowledgeBase"),
        *("LetterNgrams", "LetterStrings", "Morphology", "NGram", "Numbers", "PrefixWords"),
        *(
            "RecentWords",
            "SuffixGuesser",
            "TopWords",
            "Uniform",
            "Unigram",
            "WordFunction",
            "WordList",
            "WordTable",
        ),
    ),
}


def name_of(component: type) -> str:
    """The name of a class in recipes: "package:Class" of one of the tables, else "module:Class"."""
    name = component.__qualname__
    for package, names in COMPONENTS.items():
        if name in names and getattr(sys.modules.get(package), name, None) is component:
            return f"{package}:{name}"
    return f"{component.__module__}:{name}"


def component(name: str) -> type | None:
    """The class of zoo that recipes call so; None for any other name.

    Imports only the packages in the table.
    """
    package, _, of_class = name.partition(":")
    if of_class not in COMPONENTS.get(package, ()):
        return None
    return getattr(importlib.import_module(package), of_class)


def imported(name: str) -> type | None:
    """The component "module:Class" of a module outside zoo that this program has imported.

    None if it has not, or if the class is no component: a dataclass derived from a class of zoo.
    """
    module, _, of_class = name.partition(":")
    value = getattr(sys.modules.get(module), of_class, None)
    if in_zoo(module) or not isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    return value if any(in_zoo(base.__module__) for base in value.__mro__) else None


def in_zoo(module: str) -> bool:
    """Whether a module is one of zoo's."""
    return module.partition(".")[0] == "zoo"


def components(kind: type) -> dict[str, type]:
    """The components of a kind by name: those in the tables, and those beside a kind of another's.

    A kind of the user's own has its components in its own module.
    """
    classes = [
        component(f"{package}:{name}") for package in COMPONENTS for name in COMPONENTS[package]
    ]
    if not in_zoo(kind.__module__):
        beside = (
            vars(sys.modules[kind.__module__]).values() if kind.__module__ in sys.modules else ()
        )
        classes += [
            value for value in beside if isinstance(value, type) and dataclasses.is_dataclass(value)
        ]
    return {
        value.__name__: value
        for value in classes
        if isinstance(value, type) and issubclass(value, kind)
    }
