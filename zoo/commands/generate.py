"""zoo generate: samples text from a language model."""

import argparse

from zoo.commands import options

# Default lengths of a text, in tokens.
_LENGTH, _LENGTH_OF_CHARACTERS = 30, 200
_RULE = "-" * 40
# Where a text of characters begins.
_BREAK = "\n"


def add_generate_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo generate`."""
    add = parser.add_argument
    options.add_folder_to(parser, "folder of a training run")
    add(
        "--temperature",
        type=options.number(0, 1e9),
        default=1.0,
        help="0: always the most probable word; default: %(default)s",
    )
    options.add_truncation_to(parser)
    options.add_cache_to(parser)
    add("--seed", type=options.whole(0), default=0, help="default: %(default)s")
    add(
        "--prompt",
        default="",
        metavar="TEXT",
        help="words that each text begins with; default: none, or a line break for a model of "
        "characters",
    )
    add("--count", type=options.whole(1), default=5, help="number of texts; default: %(default)s")
    add(
        "--length",
        type=options.whole(1),
        help="greatest number of words of a text after the prompt; default: "
        f"{_LENGTH}, or {_LENGTH_OF_CHARACTERS} for a model of characters",
    )
    add(
        "--spell",
        action="store_true",
        help="open vocabulary: words spelled letter by letter, by a head that spells",
    )
    add("--features", action="store_true", help="prints a word a line, with its features")


def run_generate(arguments: argparse.Namespace):
    """Prints the texts, one a line, or one a paragraph with --features.

    Texts of characters have lines of their own; a rule stands between them.
    """
    from zoo.decoding import open_vocabulary
    from zoo.decoding.generation import generate, prompt_words, with_features
    from zoo.errors import UserError
    from zoo.evaluation.run import Run
    from zoo.evaluation.sentence_scores import words_of
    from zoo.sources import moses

    run = options.with_cache(Run.load(options.folder_of(arguments)), arguments.cache)
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    language = run.experiment.data.form.language
    if not arguments.prompt and run.lexicon.of_characters and run.lexicon.boundary is None:
        arguments.prompt = _BREAK if _BREAK in run.lexicon.ids else " "
    if not run.lexicon.of_characters:
        arguments.prompt = " ".join(words_of(arguments.prompt, run.reading))
    prompt = [prompt_words(arguments.prompt, run.lexicon, vocabulary)]
    unknown = None if arguments.spell else run.share(prompt, "the prompt")
    options.print_notes([*run.notes(prompt), unknown])
    names = ("prompt", "count", "length", "temperature", "seed")
    chosen = {name: getattr(arguments, name) for name in names}
    if arguments.length is None:
        chosen["length"] = _LENGTH_OF_CHARACTERS if run.lexicon.of_characters else _LENGTH
    truncation = {"top_k": arguments.top_k, "nucleus": arguments.nucleus}
    if arguments.spell:
        if any(value is not None for value in truncation.values()):
            raise UserError(
                "--spell draws letters, without truncation: leave out --top-k and --nucleus."
            )
        texts = open_vocabulary.generate(model, run.params, run.lexicon, vocabulary, **chosen)
    else:
        texts = generate(
            model, run.params, run.tables, run.lexicon, vocabulary, **chosen, **truncation
        )
    for number, words in enumerate(texts):
        if arguments.features:
            opened = vocabulary.open_words(run.lexicon)
            print(with_features(words, run.lexicon, opened), end="\n\n")
        elif run.lexicon.of_characters:
            print(*([_RULE] if number else []), "".join(words).removeprefix(_BREAK), sep="\n")
        else:
            print(moses.text(words, language))
