"""A run, or an export, evaluated on the tasks of lm-evaluation-harness (pip install lm-eval).

python -m examples.lm_harness models/english TASK ...

TASK is a task's name, or its YAML file. Words are as the run has them: take tasks in the language
and the tokenisation of its training text.
"""

import sys

import lm_eval
from lm_eval.api.model import LM
from lm_eval.utils import make_table

import zoo


class ZooLM(LM):
    """A language model of Zoo behind the interface of the harness."""

    def __init__(self, folder: str, longest: int = 30):
        super().__init__()
        self.run, self.longest = zoo.load(folder), longest

    def loglikelihood(self, requests):
        """log p(continuation | context), nats, and whether it is what greedy decoding gives."""
        contexts, continuations = ([request.args[n] for request in requests] for n in (0, 1))
        rows = self.run.score(continuations, prefixes=contexts)
        greedy = map(self._is_greedy, contexts, continuations)
        return [(row.log_prob, best) for row, best in zip(rows, greedy, strict=True)]

    def loglikelihood_rolling(self, requests):
        """log p of documents, each line of which is a sentence with its </s>."""
        lines = [filter(str.strip, request.args[0].splitlines()) for request in requests]
        return [sum(row.log_prob for row in self.run.score([*document])) for document in lines]

    def generate_until(self, requests):
        """Greedy continuations of contexts, up to one of the texts that end them."""
        return [self._continued(*request.args) for request in requests]

    def _is_greedy(self, context, continuation):
        words = self.run.words_in(context)
        for word in self.run.words_in(continuation):
            if self.run.log_probs(words).argmax() != self.run.id(word):
                return False
            words.append(word)
        return True

    def _continued(self, context, settings):
        length = settings.get("max_gen_toks", self.longest)
        (words,) = self.run.draw(context, count=1, length=length, temperature=0)
        words = words[len(self.run.words_in(context)) :]
        text = "".join(words) if self.run.lexicon.is_character_level else self.run.detokenize(words)
        ends = settings.get("until") or []
        for end in [ends] if isinstance(ends, str) else ends:
            text = text.partition(end)[0]
        return text


if __name__ == "__main__":
    folder, *tasks = sys.argv[1:]
    print(make_table(lm_eval.simple_evaluate(ZooLM(folder), tasks=tasks)))
