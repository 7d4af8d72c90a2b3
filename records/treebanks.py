"""Models of eleven treebanks: python -m records.treebanks FOLDER [TREEBANK ...], from $ZOO_DATA.

Each model is trained on the treebank's dev file, whose last tenth is validation (whole documents
where the file marks them), and judged on its test file: with each of `TRIALS` by seed 0, and with
the trial that is best on validation by seeds 1 and 2. These three runs are also judged over all
words of the test and on its agreement pairs. Results that FOLDER has stay as they are, so that the
command can be stopped and given again. A treebank that is judged goes into records/treebanks.json.
"""

import csv
import itertools
import os
import pathlib
import subprocess
import sys
from typing import Any

from records import treebank_figures
from records.treebank_figures import PAIRS, WAYS
from zoo.data import Conllu
from zoo.lab.evaluation.results import read_passport

# Fewest sentences first.
TREEBANKS = (
    *("hebrew_htb", "indonesian_gsd", "italian_isdt", "turkish_boun", "russian_taiga"),
    *("czech_fictree", "finnish_tdt", "basque_bdt", "english_ewt", "polish_pdb", "estonian_edt"),
)
INPUTS = {"model.core.input_dropout": 0.3}
TRIALS: dict[str, dict[str, Any]] = {
    "as_is": {},
    "inputs": {**INPUTS, "training.epochs": 30},
    "small_batch": {**INPUTS, "training.batch": 8},
    "slow": {
        **INPUTS,
        **{"training.batch": 8, "training.epochs": 30, "training.optimizer.learning_rate": 0.001},
    },
}
# The least count of a word of the training text that has a feature of its own beside the class.
FREQUENT = 4
SEEDS = (1, 2)


class Treebank:
    """The files of a treebank, relative to $ZOO_DATA, and its sides: {model: (config, fields)}."""

    def __init__(self, name: str, folder: pathlib.Path):
        self.name, self.folder = name, folder
        # {side: {trial: log-perplexity of the validation text by seed 0}}
        self.trials: dict[str, dict[str, float]] = {}
        data = pathlib.Path(os.environ["ZOO_DATA"])
        paths = (next(data.glob(f"ud_{name}/*-{part}.conllu")) for part in ("dev", "test"))
        dev, test = (str(path.relative_to(data)) for path in paths)
        documents = (data / dev).read_text("utf-8").split("# newdoc")
        counts = (document.count("# sent_id") for document in documents)
        *starts, sentences = itertools.accumulate(counts)
        tenth = sentences * 9 // 10
        start = max((start for start in starts if 0 < start <= tenth), default=tenth)
        fields = {
            "data.train": f"{dev}[:{start - sentences}]",
            "data.validation": f"{dev}[{start - sentences}:]",
            "data.tests": f'("{test}",)',
            "training.optimizer.schedule.warmup": 20,
        }
        source = Conllu(fields["data.train"], fields["data.validation"], (test,))
        train = source.read("train")
        frequent = sum(count >= FREQUENT for count in train.token_counts().values())
        rare_class = {"vocabulary.features.0.count": frequent + 2}  # </s> and <unk>, too
        files = {"vocabulary.features.1.treebanks": f'("{dev}","{test}")'}
        config = f"ud_{name}"
        self.sides: dict[str, tuple[str, dict[str, Any]]] = {
            "tags": (config, fields),
            "softmax": (f"{config}_softmax", {**fields, "model.head.tied": True}),
            "no_tags": (f"{config}_no_tags", fields),
            "class": (f"{config}_no_tags", {**fields, **rare_class}),
            "forms": (config, {**fields, **files}),
        }
        self.test_counts = source.read("test").token_counts()
        counts = train.token_counts()
        self.sizes = {
            "sentences": len(train.sentences),
            "tokens": counts.total(),
            "types": len(counts),
        }

    def train(self, side: str) -> list[pathlib.Path]:
        """Trains and judges the runs that are missing; returns the three of the best trial."""
        losses = {}
        for trial in TRIALS:
            results = self._run(side, trial, seed=0) / "results"
            passport: Any = read_passport(results / "validation.sentences.json")
            losses[trial] = passport.figures.log_perplexity
        self.trials[side] = losses
        best = min(losses, key=losses.__getitem__)
        return [self._run(side, best, seed) for seed in (0, *SEEDS)]

    def _run(self, side, trial, seed):
        run = self.folder / f"{self.name}_{side}_{trial}_{seed}"
        if not (run / "results" / "test.sentences.json").exists():
            config, fields = self.sides[side]
            fields = {**fields, **TRIALS[trial], "training.seed": seed}
            pairs = (("--set", f"{field}={value}") for field, value in fields.items())
            _call("train.py", "--config", config, *sum(pairs, ()), str(run))
            _call("evaluate.py", str(run))
        return run

    def judge_all_words(self, side: str, run: pathlib.Path):
        """Judges a run over its words and all of the test, and on pairs, unless that is done."""
        words = self.folder / f"{self.name}.words"
        with words.open("w", encoding="utf-8", newline="") as file:  # a table: ": )" is one word
            rows = [("word", "count"), *self.test_counts.items()]
            csv.writer(file, "excel-tab", lineterminator="\n").writerows(rows)
        for way in WAYS if side in ("tags", "forms") else WAYS[:1]:
            if not [*run.glob(f"results/test.sentences.lexicon-*-spread-{way}.json")]:
                option = f"--spread-{way.replace('-', '=')}"
                _call("evaluate.py", str(run), "--split=test", f"--add-words={words}", option)
        if not [*run.glob(f"results/{PAIRS}*.json")]:
            _call("evaluate.py", str(run), "--agreement", check=False)  # some have no pairs


def _call(*command, check=True):
    subprocess.run([sys.executable, *command], check=check)


def main():
    """Runs the program."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    treebanks = [Treebank(name, folder) for name in sys.argv[2:] or TREEBANKS]
    runs = {(bank, side): bank.train(side) for bank in treebanks for side in bank.sides}
    for bank in treebanks:
        by_side = {side: runs[bank, side] for side in bank.sides}
        for side, seeds in by_side.items():
            for run in seeds:
                bank.judge_all_words(side, run)
        treebank_figures.keep(bank.name, by_side, **bank.sizes, trials=bank.trials)


if __name__ == "__main__":
    main()
