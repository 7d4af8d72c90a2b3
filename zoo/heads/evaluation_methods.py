"""The contract of heads for evaluation, beside probabilities: few heads write any of it."""

import jax

from zoo.arrays.types import Context, Params, Prepared, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon


class Evaluated:
    """The part of a head's contract that only evaluation, passports and starts from another run
    use."""

    # The kinds of features that the rows of the parameters are of, () for all; None where the rows
    # are of something else, such as words.
    kinds: tuple[str, ...] | None = None
    # Whether the head can say words letter by letter, as heads.CharLSTM does; and if so, whether
    # its probabilities are divided by those of the lexicon's words.
    spells: bool = False
    renormalised: bool = False

    @property
    def ordered_by_frequency(self) -> bool:
        """Whether the frequencies of the words decide which parameters are whose."""
        return False

    def target_scores(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        context: Context,
        prepared: Prepared,
    ) -> jax.Array | None:
        """Computes log p(targets | hidden) + log Z without the sum over the words, where that pays.

        Several words after one state then need its log Z once.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [n, D].
          targets: x, int [n], each in [0, V).
          context: of a background or expert, leaves [n, ?]; or None.
          prepared: what `prepared` gave, or None.

        Returns:
          [n], nats; None of a head whose log-probabilities are no difference of the two, or cost
          as little.
        """
        return None

    def scores_per_token(self, vocabulary: int) -> int:
        """The numbers that `log_probs` holds for a token on the way to V, which blocks of tokens
        are chosen by: V, unless a head holds several arrays as wide.

        Args:
          vocabulary: V.
        """
        return vocabulary

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for words that were not there in training.

        A head has some if its parameters are of letters or the like, none if they are of words.

        Args:
          params: the trained parameters.
          lexicon: the words of training.
          other: the words to be scored.

        Raises:
          UserError: the head has parameters of words.
        """
        raise UserError(
            f"a {type(self).__name__} has parameters of the words that it was trained on and "
            "cannot score with another lexicon: heads.CNNSoftmax and heads.CharLSTM can, which "
            "know words by their letters, and heads.LogLinear, which knows them by their features. "
            "--spread-unknown gives new words even parts of its unknown word's probability."
        )

    def form_taken(self, tables: Tables) -> str | None:
        """The form in which tables let scores be computed, for passports; None if there is one.

        Args:
          tables: `tables` of the lexicon.
        """
        return None

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts of what the head lost of the words, by name, such as how many were cut; for
        passports.

        Args:
          lexicon: the words.
        """
        return {}

    def normalised_over(self, lexicon: Lexicon) -> str:
        """The set over which the probabilities of `log_prob` sum to one, in words.

        Args:
          lexicon: the words.
        """
        return f"the {len(lexicon):,} words of the lexicon"
