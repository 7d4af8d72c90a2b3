"""Names of components in saved recipes, such as "zoo.heads:NCE": the exporting package and class.

Reading a recipe depends on this table alone. The module that defines a class is not part of its
name, so that classes can move between modules.
"""

import dataclasses
import importlib
import sys

# The classes that each package exports for recipes.
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
    """Returns the name of a class in recipes: "package:Class" for zoo's, else "module:Class".

    Args:
      component: the class.
    """
    name = component.__qualname__
    for package, names in COMPONENTS.items():
        if name in names and getattr(sys.modules.get(package), name, None) is component:
            return f"{package}:{name}"
    return f"{component.__module__}:{name}"


def component(name: str) -> type | None:
    """Returns the class of zoo with a name in recipes; None for any other name.

    Imports only packages in `COMPONENTS`.

    Args:
      name: "package:Class".
    """
    package, _, of_class = name.partition(":")
    if of_class not in COMPONENTS.get(package, ()):
        return None
    return getattr(importlib.import_module(package), of_class)


def imported(name: str) -> type | None:
    """Returns the component "module:Class" of a module outside zoo that is already imported.

    Returns None if the module is not imported, or if the class is not a component: a dataclass
    derived from a class of zoo.

    Args:
      name: "module:Class".
    """
    module, _, of_class = name.partition(":")
    value = getattr(sys.modules.get(module), of_class, None)
    if in_zoo(module) or not isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    return value if any(in_zoo(base.__module__) for base in value.__mro__) else None


def in_zoo(module: str) -> bool:
    """Whether a module belongs to zoo.

    Args:
      module: its dotted name.
    """
    return module.partition(".")[0] == "zoo"


def components(kind: type) -> dict[str, type]:
    """Returns {name: class} of the components derived from a class.

    They are taken from `COMPONENTS`, and for a class outside zoo also from its own module.

    Args:
      kind: the base class.
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
