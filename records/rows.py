"""Rows of the tables of docs/results.md: {the name of a row: its records}."""


def seeds(name: str, count: int = 3) -> tuple[str, ...]:
    """Returns the names of the records of a run's seeds.

    Args:
      name: of the run.
      count: of seeds.
    """
    return tuple(f"{name}_{seed}" for seed in range(count))


CONFIGS = ("micro_log_linear", "micro_softmax")
CZECH_DOMAINS = {
    "2,900 captions alone": "domains_captions",
    "2,900 captions, 3 to 1": "domains_3_to_1",
    "2,900 captions, 1 to 1": "domains_1_to_1",
    "2,900 captions, as many as there are of both": "domains_as_they_are",
    "290 captions alone": "domains_290_captions",
    "290 captions, 3 to 1": "domains_290_3_to_1",
}
TWO_LANGUAGES = {
    "both": "two_languages_char",
    "French alone": "french_char",
    "Czech alone": "czech_char",
}
WAYS = {
    "the exact loss": seeds("micro_log_linear"),
    "importance sampling, 100 draws and the target": seeds("micro_importance_target"),
    "the same without the target": ("micro_importance",),
    "contrastive divergence, 100 steps": ("micro_contrastive",),
    "the exact loss, 0.001 sum of \\|a\\|": ("micro_penalty_0.001_1",),
    "the exact loss, 0.001 sum of a^2": ("micro_penalty_0.001",),
    "the exact loss, 0.01 sum of a^2": ("micro_penalty_0.01",),
}
# On the first 864 sentences of French: the softmax, tuned, and the log-linear model.
FRENCH_16 = {
    "log-linear, dropout 0.5": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "softmax, background as a fixed bias, dropout 0.5, 8 epochs": (
        "sm16_bg_d05",
        "sm16_bg_d05_1",
        "sm16_bg_d05_2",
    ),
    "the same, dropout 0.3": ("sm16_bg_d03",),
    "the same, of inputs 0.5, too": ("sm16_bg_d05_i05",),
    "the same, weight decay 0.01": ("sm16_bg_d05_wd",),
    "the same, weight decay 0.3": ("sm16_bg_d05_wd03",),
    "the same, windows of 35": ("sm16_bg_d05_w35",),
    "the same, two layers": ("sm16_bg_d05_l2",),
    "the same, rate 0.001": ("sm16_bg_d05_r001",),
    "the same, 4 epochs": ("sm16_bg_d05_e4",),
    "4 epochs, dropout 0.65, of inputs 0.5": ("sm16_bg_d065_i05_e4",),
    "that, tied": ("sm16_bg_tied_d065_i05_e4",),
    "softmax without the background, dropout 0.5, 4 epochs": ("sm16_d05_e4",),
}
# The log-linear model without each part of its knowledge.
FRENCH_WITHOUT = {
    "all: background, words, tags": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "a uniform background": ("ll16_d05_no_background",),
    "no words of their own": ("ll16_d05_no_words",),
    "no tags": ("ll16_d05_no_tags",),
}
# By the number of training sentences.
FRENCH_CURVE = {
    "432, log-linear": ("ll32_d05",),
    "864, log-linear": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "1,728, log-linear": ("ll8_d05",),
    "432, softmax with the background, 4 epochs": ("sm32_bg",),
    "864, softmax with the background, 4 epochs": ("sm16_bg_d05_e4",),
    "1,728, softmax with the background, 4 epochs": ("sm8_bg",),
}
# A quarter, a half and all of the text, each over its own words.
FRENCH_LARGER = {
    "3,456, log-linear": ("ll4_d05", "ll4_d05_1"),
    "6,912, log-linear": ("ll2_d05",),
    "13,826, log-linear": ("ll1_d05",),
    "3,456, softmax with the background, 8 epochs": ("sm4_bg_d05", "sm4_bg_d05_1"),
    "3,456, softmax with the background, 4 epochs": ("sm4_bg_d05_e4",),
    "6,912, softmax with the background, 4 epochs": ("sm2_bg_d05_e4",),
    "13,826, softmax with the background, 4 epochs": ("sm1_bg_d05_e4",),
}
# A quarter of the text over words that occur twice in it: {setting: (softmax, log-linear)}.
FRENCH_TUNING = {
    setting: (f"q_bg_{run}", f"q_ll_{run}")
    for setting, run in {
        "rate 0.003, 8 epochs, 128 cells, dropout 0.5": "base",
        "4 epochs": "e4",
        "12 epochs": "e12",
        "rate 0.001": "r001",
        "rate 0.006": "r006",
        "rate 0.01": "r01",
        "rate 0.006, 12 epochs": "r006e12",
        "dropout of inputs 0.3": "i03",
        "weight decay 0.1": "wd",
        "256 cells": "w256",
        "tied": "tied",
        "tied, dropout of inputs 0.3": "tiedi03",
        "12 epochs, dropout 0.65, of inputs 0.3": "i03d065e12",
        "256 cells, dropout 0.65, of inputs 0.3": "w256i03d065",
        "256 cells, rate 0.006, 12 epochs, dropout of inputs 0.3": "r006w256i03e12",
        "the same, dropout 0.65": "r006w256d065i03e12",
        "tied, rate 0.006, 12 epochs, dropout of inputs 0.3": "r006tiedi03e12",
    }.items()
}
# Over the words of all of the text, trained on parts of it.
FRENCH_ALL_WORDS = {
    f"{sentences}, {name}": tuple(f"{short}{part}_all_words_{seed}" for seed in seeds)
    for short, name in (("ll", "log-linear"), ("sm", "softmax with the background, 4 epochs"))
    for part, sentences, seeds in (
        (16, "864", (0, 1)),
        (8, "1,728", (0, 1)),
        (4, "3,456", (0, 1)),
        (2, "6,912", (0, 1) if short == "ll" else (0,)),
    )
}
FRENCH_ALL_WORDS |= {
    "13,826, log-linear": seeds("ll1_all_words"),
    "13,826, softmax with the background, 4 epochs": seeds("sm1_all_words"),
}
FRENCH_BEST = ("13,826, softmax with the background, 4 epochs", "13,826, log-linear")
# A quarter of the text, with states of all words before or of the last eight.
FRENCH_WINDOW = {
    "log-linear, all words before": ("ll4_d05", "ll4_d05_1"),
    "log-linear, the last 8 words": ("ll4_window",),
    "softmax with the background, 4 epochs, all words before": ("sm4_bg_d05_e4",),
    "softmax with the background, 4 epochs, the last 8 words": ("sm4_window_e4",),
}
# On a quarter of the Penn Treebank: the same noise, words a batch row and rates.
PTB_SAMPLED = {
    f"{name}, {samples:,} noise words, rate {rate}": tuple(
        f"ptb_{short}_{samples}_{rate}_{seed}" for seed in range(2 if rate == 40 else 1)
    )
    for samples in (100, 1000)
    for name, short in (("NCE", "nce"), ("importance sampling", "is"))
    for rate in (20, 40, 80)
}
PTB_SAMPLED |= {
    "the exact softmax, rate 20": ("ptb_exact_20_0",),
    "the exact softmax, rate 40": ("ptb_exact_40_0", "ptb_exact_40_1"),
}
_SGD = ("20", "40", "80")
# {head: (its records but for rate and seed, rates)}, on a quarter of the Penn Treebank.
PTB_HEADS = {
    "softmax": ("ptb_exact", _SGD),
    "importance sampling, 1,024 words a batch": ("ptb_is_batch", _SGD),
    "NCE, 100 words a batch row": ("ptb_nce_100", _SGD),
    "adaptive softmax": ("ptb_adaptive", _SGD),
    "hierarchical softmax": ("ptb_hierarchical", ("20", "40")),
    "mixture of 3 softmaxes": ("ptb_mixture", ("20", "40")),
    "importance sampling by Adam": ("ptb_is_adam", ("0.002", "0.004", "0.008", "0.016")),
    "CNN softmax, sampled in the same way, by Adam": (
        "ptb_cnn",
        ("0.001", "0.002", "0.004", "0.008"),
    ),
}
# English to French without attention, log-linear decoders.
CAPTIONS = {
    "`multi30k_en_fr_skip`, seed 0": "en_fr_skip",
    "small, sources reversed, seed 1": "en_fr_small_1",
    "forward, seed 1": "en_fr_small_forward_1",
    "target reversed, seed 1": "en_fr_small_target_reversed_1",
    "sources reversed, 254 cells for 192, seed 0": "en_fr_small_wide",
    "four layers, seed 0": "en_fr_small_four_layers",
    "the first half of each source, seed 0": "en_fr_small_half",
}
# Five seeds of one recipe.
FIVE = {f"skip connections, seed {seed}": f"en_fr_small_skip_{seed}" for seed in range(5)}
CZECH_CAPTIONS = {
    "sources reversed": "en_cs_small",
    "forward": "en_cs_small_forward",
    "target reversed": "en_cs_small_target_reversed",
}
# Words and letters in, each trained as suits it best; letters are characters.
CZECH = {
    "WE, constant rate, no dropout": seeds("czech_we_own"),
    "CWE, half a cosine, dropout": seeds("czech_cwe_characters"),
}
# The rows of table 1 of Jozefowicz et al. (2016), small.
LM1B = {
    "a softmax": ("lm1b_softmax",),
    "importance sampling": ("lm1b_is",),
    "NCE": ("lm1b_nce",),
    "importance sampling, CNN inputs": ("lm1b_cnn_inputs",),
    "CNN inputs and CNN softmax": ("lm1b_cnn_softmax",),
    "that, corrected by 32 numbers a word": ("lm1b_corrected",),
}
