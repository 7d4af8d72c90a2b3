"""How far the tags of a treebank reach in a text: `python -m records.tag_coverage DIR TEXT`.

`priors.Morphology` takes the tags of a word from the tokens of a treebank. Words that no token
shows have tags guessed from their endings, or none.
"""

import collections
import pathlib
from collections.abc import Callable, Mapping, Sequence

from zoo.errors import UserError
from zoo.lab.commands import options, program
from zoo.lab.commands.options import Option
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import Workdir
from zoo.priors import Morphology

OPTIONS = (Option("folder DIR", "folder of a run"), Option("text TEXT", "a split, or a file"))
TAGGED, GUESSED, UNTAGGED, UNKNOWN = "tagged there", "guessed", "without tags", "read as <unk>"


def shares(
    sentences: Sequence[Sequence[str]],
    lexicon: Mapping[str, int],
    tags_by_word: Mapping[str, tuple[str, ...]],
    has_guesser: bool,
) -> dict[str, tuple[float, float]]:
    """Computes the shares of words and of types by the origin of their tags."""
    counts = collections.Counter(word for sentence in sentences for word in sentence)
    words: collections.Counter = collections.Counter()
    types: collections.Counter = collections.Counter()
    for word, count in counts.items():
        fallback = GUESSED if has_guesser else UNTAGGED
        origin = UNKNOWN if word not in lexicon else TAGGED if word in tags_by_word else fallback
        words[origin] += count
        types[origin] += 1
    return {
        origin: (words[origin] / words.total(), types[origin] / types.total())
        for origin in (TAGGED, GUESSED, UNTAGGED, UNKNOWN)
        if types[origin]
    }


def report(folder: str | pathlib.Path, text: str, log: Callable = output_files.show):
    """Prints the shares of a text's words and types by the origin of their tags."""
    workdir = Workdir(folder)
    experiment, lexicon = workdir.experiment(), workdir.lexicon()
    vocabulary, source = experiment.vocabulary, experiment.data
    priors = [prior for prior in vocabulary.features if isinstance(prior, Morphology)]
    if not priors:
        raise UserError(f"{folder} has no tags: give a run with priors.Morphology.")
    run = Run(workdir.path, experiment, lexicon, None, {}, 0)  # parameters are not needed
    splits = {part for split in source.splits() for part in (split, *source.parts(split))}
    sentences = (run.read(text) if text in splits else run.read_file(text).corpus).sentences
    words, types = sum(map(len, sentences)), len({word for words in sentences for word in words})
    log(f"{text}: {words:,} words, {types:,} types")
    for prior in priors:
        chosen = () if prior.treebanks else prior.splits or source.splits()
        corpora = {split: vocabulary.read(source, split) for split in chosen}
        case = str.lower if vocabulary.lower_case else str
        entries = {case(word): tags for word, tags in source.lexicon_entries().items()}
        tags_by_word = prior.tags_of_words(corpora, entries)
        log(f"  tags from {', '.join(prior.treebanks or chosen)}:")
        shares_by_origin = shares(sentences, lexicon.ids, tags_by_word, prior.guesser is not None)
        for origin, (word_share, type_share) in shares_by_origin.items():
            log(f"    {origin}: {word_share:.1%} of words, {type_share:.1%} of types")


def main():
    """Reads the command line, and prints the shares."""
    parser = options.Parser(description=(__doc__ or "").partition("\n")[0])
    options.add_to(parser, OPTIONS, "tag coverage")
    arguments = options.parse(parser)
    report(arguments.folder, arguments.text)


if __name__ == "__main__":
    program.program(main)
