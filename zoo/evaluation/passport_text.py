"""The passport of a perplexity as text."""

from zoo.evaluation import leakage
from zoo.evaluation.perplexity import UNKNOWN, Impossible
from zoo.evaluation.sentence_scores import share

_MANY_UNKNOWN = 0.2


def unfinished(passport: dict) -> str | None:
    """Returns a note where a run was judged before the end of its training; else None."""
    if (passport.get("training") or {}).get("finished") is not False:
        return None
    return f"judged at step {passport['checkpoint']:,}, before its training was finished"


def _outside(passport):
    """Describes how many words of a text are outside the lexicon, as far as it is recorded."""
    if (tokens := passport.get("out_of_vocabulary")) is None:
        return "words outside the lexicon not recorded"
    types = passport["out_of_vocabulary_types"]
    if not tokens:
        written = passport["unknown_tokens"]
        return "0 outside the lexicon" + f" ({written:,} written <unk>)" * bool(written)
    of_types = types / passport["types"]
    return (
        f"{tokens:,} outside the lexicon ({passport['out_of_vocabulary_rate']:.2%} of words, "
        f"{of_types:.2%} of types)"
    )


def _many_unknown(passport):
    """Returns a line where much of a figure is of unknown words."""
    words = passport["data"].get("words")
    if words is not None and passport.get("out_of_vocabulary") == words:
        return [f"! {share(words, words, 'the text')}"]
    bands = passport["figures"].get("bands", ())
    tokens = sum(row["tokens"] for row in bands if row["band"] == UNKNOWN)
    rate = tokens / passport["tokens"]
    if rate < _MANY_UNKNOWN:
        return []
    return [
        f"! <unk>, which is easy to predict, is {rate:.0%} of the tokens: the perplexity is "
        "lower than with the words themselves"
    ]


def _read_on(passport, sentence):
    """Returns a line where sentences begin with the state that the one before left."""
    policies = passport["policies"]
    if policies["state"] != "carried" or "source" in passport:
        return []
    choice = "" if policies["boundary"] == "none" else "; --state sentences empties it"
    return [f"read on: each {sentence} begins with the state of the one before{choice}"]


def _of_source(passport):
    """Returns the line on the sources of translations, if there are any."""
    if (source := passport.get("source")) is None:
        return []
    unknown = source["out_of_vocabulary"]
    return [f"given: {source['path']}, {source['words']:,} words, {unknown:,} outside the lexicon"]


def of_seen_texts(passport: dict) -> list[str]:
    """Returns lines about the texts that the model of a figure has seen, one a role."""
    recorded, unknown = passport.get("overlap"), passport.get("not_known") or []
    if not recorded:
        return ["trained on, selected on: not recorded"]
    shown = [f"in the training text: {leakage.told(recorded['trained_on'])}"]
    if leakage.is_validation(passport["split"]):
        shown.append("selected on this text, as a validation text is for")
    else:
        told = leakage.told(recorded["selected_on"])
        shown.append(f"in the text that chose the checkpoint: {told}")
    return shown + [f"not known: the texts that {part} had seen" for part in unknown]


def warnings(passport: dict) -> list[str]:
    """Returns the warning of a figure whose text the model saw: one line, or none."""
    why = leakage.reason(passport)
    return [f"  not a figure of unseen text: {why}"] if why else []


def _knowledge(passport):
    """Returns a line for each text that gave knowledge of words and was not trained on."""
    trained = {text["digest"] for text in passport.get("trained_on") or ()}
    return [
        f"{', '.join(text['gave'])} from {text['text']} [{text['digest'][:8]}]"
        for text in passport.get("knowledge") or ()
        if text["digest"] not in trained
    ]


def _tuned(mixture):
    return f"set on {mixture['tuned_on']}" if mixture["tuned_on"] else "as given"


def conditions(passport: dict) -> list[str]:
    """Returns lines on the text, the words that count, and what the model knew of them."""
    data, character = passport["data"], passport["counts"].startswith("characters")
    word, sentence = ("character", "line") if character else ("word", "sentence")
    size = ""
    if "sentences" in data and "words" in data:
        size = f", {data['sentences']:,} {sentence}s, {data['words']:,} {word}s"
    lines = [
        f"tokens: {passport['counts']}",
        f"text: {data['path']}{size}, {_outside(passport)}; state: "
        f"{passport['policies']['state']}; normalised over {passport['normalised_over']}",
        *_read_on(passport, sentence),
        *_many_unknown(passport),
        *_of_source(passport),
        *of_seen_texts(passport),
        *_knowledge(passport),
        f"priors that saw this text: {', '.join(passport['priors_saw_this_text']) or 'none'}",
    ]
    lines += [line.strip() for line in warnings(passport)]
    if note := unfinished(passport):
        lines.append(f"! {note}")
    if ways := passport.get("learns_from_text"):
        lines.append(f"learns from this text by {' and '.join(ways)}")
    if constraint := passport.get("constraint"):
        lines.append(f"only as the grammar {constraint['grammar']} allows")
    if "impossible" in passport["figures"]:
        lines.append(Impossible(**passport["figures"]["impossible"]).sentence)
    return lines


def describe(passport: dict) -> str:
    """Formats the figures of a perplexity as text."""
    figures = passport["figures"]
    of_characters = passport["counts"].startswith("characters")
    token, word = ("character", "character") if of_characters else ("token", "word")
    lines = [
        f"{passport['split']}: log-perplexity {figures['log_perplexity']:.4f} nats per {token}, "
        f"{figures['bits']:.4f} bits{' per character' * of_characters}, perplexity "
        f"{figures['perplexity']:,.2f}, {passport['tokens']:,} {token}s",
        *(f"  {line}" for line in conditions(passport)),
    ]
    if start := passport.get("started_from"):
        lines.append(f"  started from {start['workdir']}: its {', '.join(start['parts'])}")
    if "log_z" in figures:
        log_z = figures["log_z"]
        lines.append(
            f"  log Z of the unnormalised scores: mean {float(log_z['mean']):.3f}, standard "
            f"deviation {float(log_z['standard_deviation']):.3f} nats"
        )
    if "log_perplexity_over_all_spellings" in figures:
        lines.append(
            f"  over all spellings: log-perplexity "
            f"{figures['log_perplexity_over_all_spellings']:.4f}"
        )
    for part, name in (
        ("seen", f"{word}s seen in training"),
        ("unseen", "words of the lexicon unseen in training"),
        ("strings", "strings outside the lexicon, of its classes"),
    ):
        of_part = figures.get(part, {"tokens": 0})
        if of_part["tokens"]:
            lines.append(
                f"  {name}: {of_part['tokens']:,} tokens ({of_part['rate']:.2%}), log-perplexity "
                f"{of_part['log_perplexity']:.4f}, perplexity {float(of_part['perplexity']):,.1f}"
            )
    if mixture := figures.get("mixture"):
        lines.append(
            f"  with (1 - l) p + l/{mixture['words']:,} over the words unseen in training, "
            f"l = {float(mixture['weight']):.4g} {_tuned(mixture)}: log-perplexity "
            f"{float(mixture['log_perplexity']):.4f}"
        )
    lines += [f"  {note}: {count:,}" for note, count in passport["notes"].items() if count]
    if "tokens_with_boundaries" in figures:
        lines.append(
            f"  with the boundaries counted too: log-perplexity "
            f"{figures['log_perplexity_with_boundaries']:.4f} over "
            f"{figures['tokens_with_boundaries']:,} tokens"
        )
    lines.append(f"  {'seen in training':>16} {'tokens':>10} {'log-perplexity':>15} perplexity")
    lines += [
        f"  {row['band']:>16} {row['tokens']:>10,} {row['log_perplexity']:>15.4f} "
        f"{row['perplexity']:,.1f}"
        for row in figures["bands"]
    ]
    return "\n".join(lines)
