"""Times of the losses of docs/preferences.md and docs/distillation.md: each page's own functions.

    taskset -c 0 python -m benchmarks.pages

The functions are those of a page's examples, whose memory the page prints; loss and gradients are
timed in turns, at 1,024 tokens, hidden states of 512 numbers, 32,000 words and 64 stored words.
"""

import re

import jax
import jax.numpy as jnp

from benchmarks import timing

TOKENS, SIZE, WORDS, STORED = 1_024, 512, 32_000, 64
# {page: (the shape of its words, shapes of its arrays before them and after, its functions)}
PAGES = {
    "preferences": ((TOKENS,), [], 2 * [(TOKENS,)], ("in_chunks", "by_hand", "in_blocks")),
    "distillation": (
        *((TOKENS, STORED), [(TOKENS, STORED)], []),
        ("all_logits", "looked_up", "stored"),
    ),
}


def functions(page: str) -> dict:
    """Runs the examples of a page of docs/, and returns their names."""
    text = (timing.ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    names: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(code, names)
    return names


def draw(key, shapes: list) -> list:
    """Draws an array of each shape."""
    return [0.1 * jax.random.normal(jax.random.fold_in(key, n), s) for n, s in enumerate(shapes)]


def main():
    """Prints a table for each page."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds
    key, word_key = jax.random.split(jax.random.key(0))
    hidden, weights = draw(key, [(TOKENS, SIZE), (WORDS, SIZE)])
    for page, (shape, before, after, names) in PAGES.items():
        words = jax.random.randint(word_key, shape, 0, WORDS)
        numbers = [*draw(key, before), words, *draw(word_key, after)]
        page_names = functions(page)
        sides = {
            name: timing.compiled_side(
                jax.value_and_grad(page_names[name], (0, 1)),
                *(hidden, (weights, jnp.zeros(WORDS)), *numbers),
            )
            for name in names
        }
        timing.compare(f"{page}.md, loss and gradients", sides, rounds, names[0])


if __name__ == "__main__":
    main()
