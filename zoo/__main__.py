"""python -m zoo COMMAND: uses of trained models, such as generate and compare."""

import argparse

from zoo.commands import options, program


def _generate(arguments):
    from zoo.decoding import spelled
    from zoo.decoding.generate import generate, with_features
    from zoo.evaluation.run import Run

    run = Run.load(arguments.workdir)
    model, vocabulary = run.experiment.model, run.experiment.vocabulary
    names = ("prompt", "count", "length", "temperature", "seed")
    chosen = {name: getattr(arguments, name) for name in names}
    if arguments.spell:
        texts = spelled.generate(model, run.params, run.lexicon, vocabulary, **chosen)
    else:
        texts = generate(model, run.params, run.tables, run.lexicon, vocabulary, **chosen)
    for words in texts:
        if arguments.features:
            opened = vocabulary.open_words(run.lexicon)
            print(with_features(words, run.lexicon, opened), end="\n\n")
        else:
            print(("" if run.lexicon.of_characters else " ").join(words))


def _score(arguments):
    from zoo.evaluation import sentence_scores
    from zoo.runs import outputs

    if arguments.output:
        outputs.check(arguments.output)
    run = options.run_of(arguments.workdir, arguments)
    sentence_scores.report(run, arguments.text, arguments.output, arguments.nbest, arguments.column)


def _words(arguments):
    from zoo.evaluation import word_lists
    from zoo.runs import outputs

    if arguments.output:
        outputs.check(arguments.output)
    word_lists.report(arguments.workdir, arguments.features, arguments.output)


def _compare(arguments):
    from zoo.evaluation.reports.compare import compare

    print(compare(arguments.workdirs))


def _sweep(arguments):
    from zoo.evaluation.reports.sweep import report

    report(arguments.field, arguments.workdirs, arguments.file)


def _rank(arguments):
    from zoo.evaluation.reports.rank import report

    report(arguments.workdirs, arguments.contexts, arguments.split, arguments.file)


def _agreement(arguments):
    from zoo.evaluation.judgements.agreement import report

    report(arguments.workdirs, arguments.split, arguments.file)


def _rare_words(arguments):
    from zoo.evaluation.judgements import rare_words

    _judge(rare_words, arguments)


def _slot_errors(arguments):
    from zoo.evaluation.judgements import slot_errors

    _judge(slot_errors, arguments)


def _judge(judgement, arguments):
    """Prints and keeps what a module of zoo.evaluation finds of each run; default: in the tests."""
    from zoo.evaluation import passport
    from zoo.evaluation.run import Run, splits_of

    chosen = {workdir: splits_of(workdir, arguments.split) for workdir in arguments.workdirs}
    for workdir, splits in chosen.items():
        run = Run.load(workdir)
        for split in splits:
            found = judgement.judge(run, split)
            print(workdir, judgement.describe(found), sep="\n", flush=True)
            passport.write(run, found)


def _micro_report(arguments):
    from zoo.evaluation.reports.micro_report import report

    report(arguments.workdirs)


def main():
    """Reads the command line and does what it says."""
    parser = argparse.ArgumentParser(prog="python -m zoo")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("generate", help="samples text from a language model")
    add = command.add_argument
    add("--workdir", required=True, help="folder of a training run")
    add("--temperature", type=float, default=1.0, help="0: always the most probable word")
    add("--seed", type=int, default=0)
    add("--prompt", default="", metavar="TEXT", help="words that the text begins with")
    add("--count", type=int, default=5, help="texts")
    add("--length", type=int, default=30, help="words of a text at most, beside the prompt")
    add("--spell", action="store_true", help="words of any spelling, from a head that spells")
    add("--features", action="store_true", help="a word a line, with what is known of it")
    command.set_defaults(do=_generate)

    command = commands.add_parser(
        "score", help="log-probabilities of sentences, or of the hypotheses of n-best lists"
    )
    add = command.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("text", metavar="FILE", help="a sentence a line; or CoNLL-U, or a table of items")
    add("--output", metavar="FILE", help="the table to write, with tabs; default: prints it")
    add("--nbest", action="store_true", help="lines of n-best lists: id ||| hypothesis ||| ...")
    add("--column", type=int, metavar="N", help="the sentence is the N-th field of tabs, or of |||")
    options.add_to(command)
    command.set_defaults(do=_score)

    command = commands.add_parser("words", help="prints the words of a run, as a table")
    add = command.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("--features", action="store_true", help="with the features of each")
    add("--output", metavar="FILE", help="the table to write; default: prints it")
    command.set_defaults(do=_words)

    command = commands.add_parser("compare", help="puts the results of runs side by side")
    command.add_argument("workdirs", nargs="+", metavar="DIR", help="folders of evaluated runs")
    command.set_defaults(do=_compare)

    command = commands.add_parser(
        "sweep", help="draws the results of runs against one number of their experiments"
    )
    add = command.add_argument
    add("field", help="its dotted name, as for --set: vocabulary.features.0.count")
    add("workdirs", nargs="+", metavar="DIR", help="folders of evaluated runs")
    add("--file", default="sweep.png", help="the picture to write: .png, .pdf or .svg")
    command.set_defaults(do=_sweep)

    command = commands.add_parser(
        "rank", help="measures and draws the rank of heads' log-probability matrices"
    )
    add = command.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add("--contexts", type=int, default=1024, help="rows of the matrix")
    add("--split", default="validation")
    add("--file", default="rank.png", help="the picture to write: .png, .pdf or .svg")
    command.set_defaults(do=_rank)

    command = commands.add_parser(
        "agreement", help="accuracy on agreement pairs made from the runs' treebank, by distance"
    )
    add = command.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add("--split", action="append", default=[], help="may be repeated; default: the tests")
    add("--file", default="agreement.png", help="the picture to write: .png, .pdf or .svg")
    command.set_defaults(do=_agreement)

    for name, do, about in (
        ("rare-words", _rare_words, "log-probability of rare numbers and names, each in its place"),
        ("slot-errors", _slot_errors, "names that realisations of meanings leave out or make up"),
    ):
        command = commands.add_parser(name, help=about)
        add = command.add_argument
        add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
        add("--split", action="append", default=[], help="may be repeated; default: the tests")
        command.set_defaults(do=do)

    command = commands.add_parser(
        "micro-report", help="puts models of the micro language beside the language itself"
    )
    command.add_argument("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    command.set_defaults(do=_micro_report)

    for command in commands.choices.values():
        options.add_common_to(command)
    arguments = options.parse(parser)
    arguments.do(arguments)


if __name__ == "__main__":
    program.program(main)
