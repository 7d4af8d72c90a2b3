"""Output of `zoo translate`: translations, n-best lists, alignments, and pictures."""

import itertools
import sys
from typing import Any, NamedTuple


class Translation(NamedTuple):
    """A translation of a sentence."""

    hypothesis: Any
    words: list[str]
    source: list[str]  # as it is written
    read: list[str]  # as the runs read it, with marks of unknown words


def write(translations, translator, arguments):
    """Writes the lines of translations, their alignments, and the picture of one of them."""
    from zoo.evaluation import translators
    from zoo.runs import output_files
    from zoo.sources import pairs

    links: list[str] = []

    def lines():
        for number, of_sentence in enumerate(itertools.chain.from_iterable(translations)):
            for one in of_sentence if arguments.alignments else ():
                found = translators.links(translator, one.hypothesis, one.read)
                links.append(pairs.pharaoh(found) + "\n")
            if arguments.alignments and not of_sentence:
                links.append("\n")
            if of_sentence:
                _draw(translator, of_sentence[0], arguments)
            yield _lines(number, of_sentence, translator, arguments)

    if arguments.output:
        output_files.write_lines(arguments.output, list(lines()), "the translations")
    else:
        for line in lines():
            sys.stdout.write(line)
            sys.stdout.flush()
    if arguments.alignments:
        output_files.write_lines(arguments.alignments, links, "the alignments")


def _draw(translator, one, arguments):
    """Draws the pictures of a translation that the arguments ask for."""
    from zoo.evaluation import translators

    for file, values, label in (
        (arguments.plot_attention, translators.attention_weights, "weight"),
        (arguments.plot_gradients, translators.gradients, "norm of the gradient"),
    ):
        if file:
            from zoo.comparison import plot_style

            matrix = values(translator, one.hypothesis, one.read)
            plot_style.attention(one.source, one.words, matrix, file, label)


def _lines(number, translations, translator, arguments) -> str:
    """Returns the output of a sentence: a translation, or an n-best list."""
    from zoo.sources import nbest

    if not arguments.nbest:
        return translator.written(translations[0].words if translations else []) + "\n"
    if arguments.nbest_format == "plain":
        return "".join(" ".join(one.words) + "\n" for one in translations) + "\n"
    lines: list[Any] = []
    for one, words, *_ in translations:
        # A hypothesis that did not end has no boundary among its tokens.
        features = {"LogProb": one.log_prob, "Length": len(one.log_probs), "Ended": one.complete}
        lines.append(nbest.line(number, words, features, one.score))
    if not translations:
        features = {"LogProb": 0.0, "Length": 0, "Ended": True}
        lines.append(nbest.line(number, [], features, 0.0))
    return "".join(f"{line}\n" for line in lines)
