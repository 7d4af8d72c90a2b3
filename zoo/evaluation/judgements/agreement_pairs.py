"""Agreement pairs made from a treebank: a form against the other form of its lemma.

In a sentence of the treebank, a word that agrees in number or gender with a word to its left is
swapped for the form of the same lemma that differs in that feature alone:

    la maison que les voisins ont achetée   ->   la maison que les voisins ont acheté
"""

import collections
from collections.abc import Iterable

PHENOMENA = ("Number", "Gender")
# Universal Dependencies, versions 1 and 2. A subject's predicate and the predicate's auxiliaries
# agree with it; a modifier with its noun.
SUBJECTS = {"nsubj", "nsubjpass", "nsubj:pass"}
AUXILIARIES = {"aux", "auxpass", "aux:pass", "aux:tense", "cop"}
MODIFIERS = {"amod", "acl"}
PARTS_OF_SPEECH = {"ADJ", "AUX", "VERB"}
# A form has features by annotation errors if it has them at most this often beside others.
ERRORS = 0.05
# What is told of each pair: see `zoo.evaluation.judgements.agreement.Row`.
FACTS = (
    "sentence",
    "position",
    "phenomenon",
    "distance",
    "controller",
    "good_word",
    "bad_word",
)

Features = frozenset[tuple[str, str]]
Paradigms = dict[tuple[str, str], dict[Features, collections.Counter]]


def paradigms(sentences: Iterable[list[dict]]) -> Paradigms:
    """Returns {(lemma, part of speech): {features: counts of forms}}, in lower case."""
    forms_of: collections.defaultdict = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter)
    )
    for sentence in sentences:
        for token in sentence:
            if isinstance(token["id"], int):
                lemma = token["lemma"], token["upos"]
                forms_of[lemma][_features(token)][token["form"].lower()] += 1
    return forms_of


def twin(token: dict, name: str, forms: Paradigms) -> str | None:
    """Returns the most frequent form of the token's lemma that differs in the value of `name`
    alone.

    None if there is none, or if that form has the token's own features too, rare errors of the
    treebank aside.
    """
    features = _features(token)
    analyses = forms.get((token["lemma"], token["upos"]), {})
    rest = {pair for pair in features if pair[0] != name}
    counts: collections.Counter = collections.Counter()
    for others, of_form in analyses.items():
        changed = others - rest
        if others != features and others >= rest and {pair[0] for pair in changed} == {name}:
            counts.update(of_form)
    if not counts:
        return None
    form = min(counts, key=lambda form: (-counts[form], form))
    own = analyses.get(features, collections.Counter())[form]
    return None if form == token["form"].lower() or own > ERRORS * counts[form] else form


def agreements(sentence: list[dict]) -> list[tuple[int, int]]:
    """Returns (controller, controlled) positions of words that may agree, the controller to the
    left.
    """
    position = {token["id"]: number for number, token in enumerate(sentence)}
    pairs = set()
    for number, token in enumerate(sentence):
        head = position.get(token["head"])
        if head is None:
            continue
        if token["deprel"] in SUBJECTS:
            pairs.add((number, head))
            pairs.update(
                (number, other)
                for other, candidate in enumerate(sentence)
                if candidate["head"] == token["head"] and candidate["deprel"] in AUXILIARIES
            )
        elif token["deprel"] in MODIFIERS:
            pairs.add((head, number))
    return sorted(pair for pair in pairs if pair[0] < pair[1])


def pairs_of(
    sentences: Iterable[list[dict]], forms: Paradigms, lower_case: bool
) -> list[tuple[list[str], list[str], dict]]:
    """Returns (good words, bad words, facts) of each agreement that shows, a fact for each of
    `FACTS`.

    An agreement shows if the controlled word is a verb or an adjective, and if gender and number,
    as far as both words have them, each have a single value, the same in both: a participle that
    does not agree often differs in one of them. The distance is between the words' positions.
    Sentences and positions are counted from 1.
    """
    pairs = []
    for number, sentence in enumerate(sentences, 1):
        words = [token["form"].lower() if lower_case else token["form"] for token in sentence]
        for controller, controlled in agreements(sentence):
            controls, token = (dict(_features(sentence[p])) for p in (controller, controlled))
            shared = [name for name in PHENOMENA if name in controls and name in token]
            if sentence[controlled]["upos"] not in PARTS_OF_SPEECH or any(
                controls[name] != token[name] or "," in token[name] for name in shared
            ):
                continue
            for name in shared:
                form = twin(sentence[controlled], name, forms)
                if form is None:
                    continue
                wrong = [*words[:controlled], form, *words[controlled + 1 :]]
                distance, place = controlled - controller, controlled + 1
                forms_of_pair = words[controller], words[controlled], form
                facts = (number, place, name.lower(), distance, *forms_of_pair)
                pairs.append((words, wrong, dict(zip(FACTS, facts, strict=True))))
    return pairs


def _features(token) -> Features:
    return frozenset((token["feats"] or {}).items())
