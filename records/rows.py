"""Rows of the tables of docs/results/: {the name of a row: its records}."""


def seeds(name: str, count: int = 3) -> tuple[str, ...]:
    """Returns the names of the records of a run's seeds.

    Args:
      name: of the run.
      count: of seeds.
    """
    return tuple(f"{name}_{seed}" for seed in range(count))


MICRO = {f"`{config}`": seeds(config) for config in ("micro_log_linear", "micro_softmax")}
CZECH_DOMAINS = {
    "2,900 captions alone": seeds("domains_captions"),
    "2,900 captions, 3 to 1": seeds("domains_3_to_1"),
    "2,900 captions, 1 to 1": seeds("domains_1_to_1"),
    "2,900 captions, in proportion to the sizes of the corpora": seeds("domains_as_they_are"),
    "290 captions alone": seeds("domains_290_captions"),
    "290 captions, 3 to 1": seeds("domains_290_3_to_1"),
}
# Trigrams of Czech captions, which re-rank translations: {model of the paper: runs}.
CAPTION_MODELS = {
    "WE": seeds("czech_we_3_captions"),
    "CE, seed 0": seeds("czech_ce_3_captions", 1),
    "CWE": seeds("czech_cwe_3_captions"),
    "CWE-CWE": seeds("czech_cwe_cwe_3_captions"),
    "CWE-CWE, noise of any spelling, seed 0": seeds("czech_cwe_cwe_3_open_captions", 1),
}
TWO_LANGUAGES = {
    "both": seeds("two_languages_char"),
    "French alone": seeds("french_char"),
    "Czech alone": seeds("czech_char"),
    "Czech alone, 20,000 sentences an epoch": seeds("czech_char_twice"),
}
WAYS = {
    "the exact loss": seeds("micro_log_linear"),
    "importance sampling, 100 draws and the target": seeds("micro_importance_target"),
    "contrastive divergence, 100 steps": seeds("micro_contrastive"),
    "the exact loss, 0.001 sum of \\|a\\|": seeds("micro_penalty_l1"),
    "the exact loss, 0.001 sum of a^2": seeds("micro_penalty_0.001"),
    "the exact loss, 0.01 sum of a^2": seeds("micro_penalty_0.01"),
}
# French over the words of the training text that occur twice, tuned on validation.
FRENCH = {"softmax": seeds("a_bg_tiedw256"), "log-linear": seeds("a_ll_w256")}
# Over the words of the tests, too: {model: the end of its runs' names}.
FRENCH_CLOSED_MODELS = {"softmax": "bg", "rare words as a class": "class", "log-linear": "ll"}
FRENCH_CLOSED = {model: seeds(f"closed_{name}") for model, name in FRENCH_CLOSED_MODELS.items()}
# {setting: (the runs' names on a quarter of the text, on all of it)}, "" without a run
_SETTINGS = {
    "rate 0.003, 8 epochs, 128 cells, dropout 0.5": ("base", ""),
    "4 epochs": ("e4", ""),
    "12 epochs": ("e12", "e12_0"),
    "rate 0.001": ("r001", ""),
    "rate 0.006": ("r006", ""),
    "rate 0.01": ("r01", ""),
    "rate 0.006, 12 epochs": ("r006e12", ""),
    "dropout of inputs 0.3": ("i03", ""),
    "weight decay 0.1": ("wd", ""),
    "256 cells": ("w256", "w256_0"),
    "tied": ("tied", ""),
    "tied, dropout of inputs 0.3": ("tiedi03", ""),
    "12 epochs, dropout 0.65, of inputs 0.3": ("i03d065e12", ""),
    "256 cells, dropout 0.65, of inputs 0.3": ("w256i03d065", ""),
    "256 cells, rate 0.006, 12 epochs, dropout of inputs 0.3": ("r006w256i03e12", ""),
    "the same, dropout 0.65": ("r006w256d065i03e12", "w256d065_0"),
    "T: tied, rate 0.006, 12 epochs, dropout of inputs 0.3": ("r006tiedi03e12", "tied_0"),
    "T, rate 0.01": ("T01", ""),
    "T, 16 epochs": ("r006tiedi03e16", ""),
    "T, 256 cells": ("r006tiedw256i03e12", "tiedw256_0"),
    "T, locked masks": ("tied_locked", ""),
    "T, locked masks, dropout of U 0.3, of words 0.1": ("tied_masks", ""),
    "the same, layers of 256 and 128 cells, dropout 0.4, penalties 2 and 1": ("tied_layers", ""),
}
FRENCH_TUNING = {
    setting: (f"q_bg_{quarter}", f"q_ll_{quarter}", f"a_bg_{whole}", f"a_ll_{whole}")
    for setting, (quarter, whole) in _SETTINGS.items()
}
# Over the words of the tests, too: {model: {setting: (run on a quarter of the text, on all)}}.
FRENCH_CLOSED_TUNING = {
    "softmax": {
        "T": ("closed4_bg_0", "closed_bg_0"),
        "T, 4 epochs": ("closed4_bg_e4", ""),
        "T, 4 epochs, rate 0.003": ("closed4_bg_e4_r003", ""),
        "T, 256 cells, 4 epochs, rate 0.003": ("closed4_bg_w256_e4_r003", ""),
        "T, 256 cells": ("", "closed_bg256_0"),
    },
    "rare words as a class": {
        "T": ("closed4_class_T128", "closed_class_0"),
        "T, 256 cells": ("closed4_class_T256", "closed_class256_0"),
        "T, 256 cells, words of the class that occur twice, too": ("closed4_class3_T256", ""),
        "T, 256 cells, rate 0.003": ("closed4_class_T256_r003", ""),
        "T, 256 cells, no dropout of inputs": ("closed4_class_T256_i0", ""),
        "T, 256 cells, 8 epochs": ("closed4_class_0", ""),
        "rate 0.003, 8 epochs, 256 cells": ("closed4_class_w256", ""),
    },
    "log-linear": {
        "rate 0.003, 8 epochs, 256 cells": ("closed4_ll_untied", "closed_ll_untied"),
        "the same, tied": ("closed4_ll_0", "closed_ll_0"),
        "the same, a feature for each word that occurs twice": ("closed4_ll_5495_tied", ""),
        "the same, not tied": ("closed4_ll_5495", ""),
        "T": ("closed4_ll_T128", ""),
        "T, 256 cells": ("closed4_ll_T256", "closed_ll_T256"),
        "T, 256 cells, a feature for each word that occurs twice": ("closed4_ll_5495_T256", ""),
    },
}
# {part of the text: (training sentences, seeds)}
FRENCH_TEXTS = {"16": ("864", 3), "1": ("13,826", 3)}
# The log-linear model without each part of its knowledge, on 1/16 of the text.
FRENCH_WITHOUT = {
    "all: background, words, tags": seeds("closed16_ll"),
    "a uniform background": seeds("closed16_ll_no_background"),
    "no words of their own": seeds("closed16_ll_no_words"),
    "no tags": seeds("closed16_ll_no_tags"),
}
# Over the words of all of the text and the tests, trained on parts of it: {sentences: part}.
FRENCH_PARTS = {"864": "closed16", "3,456": "closed4", "13,826": "closed"}
# The same recipes with products in float32 and in bfloat16: {text: (runs' names, tests)}.
PRECISION = {
    "Penn Treebank, a quarter, softmax": ("bf_ptb", ("test",)),
    "French, log-linear": ("bf_french", ("test1", "test2")),
}
PTB_AWD = seeds("ptb_awd_small")
# {row: how the model learns from the text that it is judged on}
LEARNING = {
    "`ptb_awd_small`": "",
    "with a cache of 2,000 words": "a cache",
    "with dynamic evaluation": "dynamic evaluation",
}
# {head: its results of benchmarks.ingredients in records/ptb_strong}, on the core of ptb_awd_small.
PTB_STRONG = {
    "softmax": "softmax",
    "importance sampling, 1,024 words a batch": "importance",
    "log-linear, words and affixes": "log_linear",
    "mixture of 3 softmaxes": "mixture",
    "softmax, not tied": "untied",
    "adaptive softmax": "adaptive",
    "CNN softmax, sampled in the same way, by Adam": "cnn",
}
# Heads that are also compared with a softmax that is not tied.
AGAINST_UNTIED = ("log_linear", "adaptive", "cnn")
_ADAGRAD = ("2", "4", "8")
_SGD = ("20", "40", "80")
# {head: (its records but for rate and seed, rates)}, on a quarter of the Penn Treebank.
PTB_HEADS = {
    "softmax": ("ptb_exact", _SGD),
    "importance sampling, 1,024 words a batch": ("ptb_is_batch", _SGD),
    "NCE, 100 words a batch row": ("ptb_nce_100", _SGD),
    "adaptive softmax": ("ptb_adaptive", _SGD),
    "hierarchical softmax": ("ptb_hierarchical", _SGD),
    "mixture of 3 softmaxes": ("ptb_mixture", ("20", "40")),
    "importance sampling by Adam": ("ptb_is_adam", ("0.002", "0.004", "0.008", "0.016")),
    "CNN softmax, sampled in the same way, by Adam": (
        "ptb_cnn",
        ("0.001", "0.002", "0.004", "0.008", "0.016"),
    ),
}
# News, numbers and names by their spelling; questions about countries; {model: runs}.
RARE_WORDS = {
    "softmax": seeds("rare_words_softmax"),
    "log-linear": seeds("rare_words_log_linear"),
}
COUNTRIES = {
    "log-linear with the expert": seeds("countries_expert"),
    "log-linear": seeds("countries_log_linear"),
    "softmax": seeds("countries_softmax"),
}
# {captions of training: (runs over a background of news, runs from scratch)}; 0 for no training.
ADAPTATION: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "0": (("adapt_0",), ()),
    **{
        f"{int(captions):,}": (seeds(f"adapt_{captions}"), seeds(f"scratch_{captions}"))
        for captions in ("50", "500", "5000")
    },
}
# Forms that answer questions, of a grammar; {config: runs}.
FORMS = {
    config: seeds(config)
    for config in (
        "geoquery",
        "geoquery_constrained",
        "geoquery_names",
        "geoquery_attention",
        "geoquery_attention_constrained",
        "overnight",
        "overnight_constrained",
        "overnight_attention",
        "overnight_attention_constrained",
    )
}
# Further seeds of some of these.
FORMS_FURTHER = {
    f"{config}{way}": tuple(f"{config}{way}_{seed}" for seed in range(3, last + 1))
    for config, last in (("geoquery_attention", 10), ("overnight", 8))
    for way in ("", "_constrained")
}
# Language models of a recogniser's lists.
SPEECH = {
    "`speech_softmax`": seeds("speech_softmax"),
    "`speech_log_linear`": seeds("speech_log_linear"),
}
# Restaurants described from their properties.
E2E = {f"`{config}`": seeds(config) for config in ("e2e_plain", "e2e_priming")}
# Encoder-decoders of captions, whose sources are read from the first word or from the last.
STRAIGHT, REVERSED = seeds("en_fr_straight"), seeds("en_fr_reversed", 5)
# {models of a row: those together that translate, several of them for seeds}
CAPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "one, straight": tuple((run,) for run in STRAIGHT),
    "one, reversed": tuple((run,) for run in REVERSED[:3]),
    "two, reversed": (REVERSED[:2],),
    "five, reversed": (REVERSED,),
}
# Lists that are re-scored: {their system: {scored by: runs together}}; by none, its own weights.
LISTS: dict[str, dict[str, tuple[str, ...]]] = {
    "attention": {
        "itself": (),
        "straight_0": STRAIGHT[:1],
        **{run.removeprefix("en_fr_"): (run,) for run in REVERSED[:3]},
        "five": REVERSED,
    },
    "reversed_0": {"itself": (), "five": REVERSED},
}
# Words and letters in, each trained as suits it best; letters are characters.
CZECH = {
    "WE, constant rate, no dropout": seeds("czech_we_own"),
    "CWE, half a cosine, dropout": seeds("czech_cwe_characters"),
}
# The rows of table 1 of Jozefowicz et al. (2016), small.
LM1B = {
    "importance sampling": ("lm1b_is", _ADAGRAD),
    "NCE": ("lm1b_nce", _ADAGRAD),
    "importance sampling, CNN inputs": ("lm1b_cnn_inputs", _ADAGRAD),
    "CNN inputs and CNN softmax": ("lm1b_cnn_softmax", _ADAGRAD),
    "that, corrected by 32 numbers a word": ("lm1b_corrected", _ADAGRAD),
}
# The same over all 793,471 words.
LM1B_FULL = {
    "tables of words": seeds("lm1b_full_tables"),
    "networks of letters in the inputs": seeds("lm1b_full_inputs"),
    "that, and a corrected CNN softmax": seeds("lm1b_full_corrected"),
    "that core, frozen, and an LSTM that spells, by Adagrad, seed 0": ("lm1b_full_letters4_0",),
    "the same by Adam, seed 0": ("lm1b_full_letters_adam_0",),
    "by Adam, at a falling rate": seeds("lm1b_full_letters_falling"),
}
