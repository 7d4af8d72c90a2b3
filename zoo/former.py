"""Former names of modules that documentation has named: they import what stands there now.

Kept for one release. A name warns once, with the new one.
"""

import importlib
import importlib.abc
import importlib.util
import sys
import warnings

MODULES = {
    "zoo.allocator": "zoo.commands.allocator",
    "zoo.by_length": "zoo.arrays.by_length",
    "zoo.checkpoints": "zoo.runs.checkpoints",
    "zoo.cli": "zoo.commands.program",
    "zoo.convolution": "zoo.networks.convolution",
    "zoo.files": "zoo.sources.files",
    "zoo.heads.exact": "zoo.losses.softmax",
    "zoo.heads.exact_sum": "zoo.losses.softmax",
    "zoo.keys": "zoo.arrays.keys",
    "zoo.open_words": "zoo.data.open_words",
    "zoo.rows": "zoo.arrays.rows",
    "zoo.signature_forms": "zoo.lexicon.signature_forms",
    "zoo.signatures": "zoo.lexicon.signatures",
    "zoo.sparse": "zoo.arrays.sparse",
    "zoo.spelling": "zoo.lexicon.spelling",
    "zoo.workdir": "zoo.runs.workdir",
    **{f"zoo.data.{name}": f"zoo.sources.{name}" for name in ("conllu", "corpus", "text")},
    "zoo.evaluation.compare": "zoo.evaluation.reports.compare",
    "zoo.evaluation.minimal_pairs": "zoo.evaluation.judgements.minimal_pairs",
    "zoo.evaluation.outputs": "zoo.runs.outputs",
    "zoo.priors.arpa": "zoo.priors.ngrams.arpa",
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their former names."""

    def find_spec(self, name, path=None, target=None):
        """A specification for a former name, None for all others."""
        return importlib.util.spec_from_loader(name, self) if name in MODULES else None

    def create_module(self, spec):
        """Imports the module that stands there now, and warns."""
        name = MODULES[spec.name]
        warnings.warn(f"{spec.name} is now {name}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(name)
        spec.loader_state = module.__spec__  # import gives the module this one
        return module

    def exec_module(self, module):
        """Keeps the module's own specification, and runs nothing again."""
        module.__spec__ = module.__spec__.loader_state


def install():
    """Makes former names importable from now on."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
