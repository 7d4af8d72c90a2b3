"""Methods of heads that serve evaluation, except probabilities; few heads override any."""

import jax

from zoo.arrays.types import Context, Params, Prepared, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon


class Evaluated:
    """Methods of a head that only evaluation, passports and warm starts use."""

    # The kinds of features that the rows of the parameters belong to, () for all kinds; None if the
    # rows belong to something else, such as words.
    kinds: tuple[str, ...] | None = None
    # Whether the head can spell words letter by letter, as heads.CharLSTM does; and if so, whether
    # its probabilities are renormalised over the lexicon's words.
    spells: bool = False
    renormalised: bool = False

    @property
    def ordered_by_frequency(self) -> bool:
        """Whether the frequencies of words decide which parameters belong to which word."""
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
        """Computes log p(targets | hidden) + log Z, which needs no sum over the words.

        To score several words after one hidden state, log Z is then computed once.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [n, D].
          targets: x, int [n], each in [0, V).
          context: the context of a background or expert, leaves [n, ?]; or None.
          prepared: the result of `prepared`, or None.

        Returns:
          Scores [n], nats. None if the head's log-probabilities are not a score minus log Z, or if
          they cost no more than a score.
        """
        return None

    def scores_per_token(self, vocabulary: int) -> int:
        """Returns how many numbers `log_probs` holds in memory for a token.

        The size of token blocks is chosen by it. It is V unless a head holds several arrays as wide
        as the vocabulary.

        Args:
          vocabulary: V.
        """
        return vocabulary

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the parameters for another lexicon than the one of training.

        Heads whose parameters belong to letters or features can do this; heads whose parameters
        belong to words cannot.

        Args:
          params: the trained parameters.
          lexicon: the words of training.
          other: the words to be scored.

        Raises:
          UserError: parameters belong to words.
        """
        raise UserError(
            f"a {type(self).__name__} has parameters for the words of its training and cannot "
            "score with another lexicon: train heads.CNNSoftmax or heads.CharLSTM, which read "
            "letters, or heads.LogLinear, which reads features; or give --spread-unknown, with "
            "which new words share the unknown word's probability evenly."
        )

    def form_taken(self, tables: Tables) -> str | None:
        """Returns the form in which scores are computed, for passports.

        Args:
          tables: `tables` of the lexicon.

        Returns:
          The form's name; None if the head has only one form.
        """
        return None

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words that the head does not represent in full, for passports.

        Args:
          lexicon: the words.

        Returns:
          {description: number of words}, such as how many words were cut.
        """
        return {}

    def normalised_over(self, lexicon: Lexicon) -> str:
        """Describes the set over which the probabilities of `log_prob` sum to one.

        Args:
          lexicon: the words.
        """
        return f"the {len(lexicon):,} words of the lexicon"
