"""The softmax whose output vectors are computed from the letters of words.

Jozefowicz et al., "Exploring the limits of language modeling" (2016), section 3.2; the output side
of "CWE-CWE" in Labeau and Allauzen (2017), section 2.4. With the convolution CNN over spellings
(zoo.layers.char_convolution) and, to tell words apart that are spelled alike, a learned vector
r_x of few dimensions for each word and its projection A,

    w_x = CNN(letters of x) + r_x A,        p(x | h) = exp(w_x . h) / sum_v exp(w_v . h).

Without the correction r, no parameter belongs to a word. A word added after training has r = 0.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import products, row_lookup
from zoo.base.arrays.parameter_sharding import HIDDEN, VECTOR, WORDS, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Prepared, Tables
from zoo.errors import UserError, check_least
from zoo.heads import noise
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.nce import NCE
from zoo.heads.noise import LetterNoise
from zoo.heads.sampled import SampledHead
from zoo.heads.softmax import Softmax, check_soft_cap
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.losses.noise_sampling import NoiseSample, draw_per_unit, log_expected_count


@dataclasses.dataclass(frozen=True)
class CNNSoftmax(Head):
    """p(x | h) = exp(w_x . h) / sum_v exp(w_v . h), w from the letters.

    Exact losses and probabilities are the softmax's over the computed vectors, [V, D]. The vectors
    are computed in blocks, once for each batch in training and once for all batches in evaluation
    (`prepared`). A sampled loss computes only the vectors of the target and noise words, each
    distinct one once.

    Attributes:
      network: the convolution; its parameters are not shared with an embedding.
      correction: the dimension of r; 0 for no correction.
      sampled: the head whose sampled loss is trained, such as NCE() or ImportanceSampling(); None
        for the exact loss. The bias of such a head is one number for all words, with the same
        start: it only matters for a loss that holds Z at a constant. With the noise LetterNoise,
        which only NCE takes, noise words are any spellings.
      initial_scale: r and A start uniform in +-initial_scale.
      soft_cap: the number beyond which no score goes; None for no cap, as with a sampled loss.

    Example:
      >>> head = heads.CNNSoftmax()
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.vectors(params, tables).shape  # from the letters of the words
      (3, 4)
    """

    network: Convolution = Convolution()
    correction: int = 0
    sampled: Head | None = None
    initial_scale: float = 0.05
    soft_cap: float | None = None

    parameter_axes = axes(correction=(WORDS, VECTOR), projection=(None, HIDDEN))

    def __post_init__(self):
        check_least(self, correction=0)
        check_soft_cap(self)
        if self.sampled is not None and not isinstance(self.sampled, SampledHead):
            raise UserError(
                f"sampled of CNNSoftmax is {self.sampled!r}, which has no sampled loss: give NCE, "
                "ImportanceSampling, BlackOut or none."
            )
        if self.sampled is not None and self.soft_cap is not None:
            raise UserError(
                "soft_cap of CNNSoftmax goes with the exact loss: leave it out, or sampled."
            )

    @property
    def has_open_noise(self) -> bool:
        """Whether noise words are spellings instead of words of the lexicon."""
        return self.sampled is not None and isinstance(self._sampled.noise, LetterNoise)

    @property
    def _sampled(self) -> SampledHead:
        """The head whose sampled loss is trained, where there is one."""
        assert isinstance(self.sampled, SampledHead)  # as __post_init__ has seen
        return self.sampled

    @property
    def loss_name(self) -> str:
        return "loss" if self.sampled is None else self.sampled.loss_name

    @property
    def loss_draws(self) -> bool:
        return self.sampled is not None

    @property
    def row_tables(self) -> tuple[str, ...]:
        return () if self.sampled is None else ("correction",)

    @property
    def array_shapes(self) -> Shapes | None:
        shapes = self.network.array_shapes().items()
        params: dict[str, str | None] = {f"network/{name}": letters for name, letters in shapes}
        if self.correction:
            params |= {"correction": "V R", "projection": "R D"}
        scalar_names = self._scalar_names()
        tables = {"spelling/letters": "int V L", "spelling/lengths": "int V"}
        noise_shapes: dict[str, str | None] = {}
        if self.has_open_noise:
            noise_shapes = dict.fromkeys(("log_p", "threshold", "alias", "next", "log_q"))
        elif self.sampled is not None:
            noise_shapes = dict(self._sampled.array_shapes.loss_tables)
        noise_shapes = {f"sampled/{name}": letters for name, letters in noise_shapes.items()}
        return Shapes(params | dict.fromkeys(scalar_names, ""), tables, noise_shapes)

    def _scalar_names(self) -> list[str]:
        """Returns the names of the sampled loss's further parameters, one number each."""
        params = {} if self.sampled is None else self._sampled.array_shapes.params
        return [name for name in params if name != "weights"]

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns {"spelling": the padded spellings, "sampled": the noise of a sampled loss}."""
        sampled: Tables = {}
        if self.sampled is not None and isinstance(self._sampled.noise, LetterNoise):
            if self.correction or self._sampled.distinct or not isinstance(self.sampled, NCE):
                raise UserError(
                    "noise of CNNSoftmax's sampled head is LetterNoise, whose draws are spellings "
                    "without a correction, and are all kept: give NCE with distinct=False, and "
                    "correction=0."
                )
            sampled = self._sampled.noise.tables(lexicon, self.network.spelling)
        elif self.sampled is not None:
            sampled = self.sampled.tables(lexicon)
        return {"spelling": self.network.tables(lexicon), "sampled": sampled}

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """Returns the spellings without the noise, which may be unable to draw new words."""
        return {"spelling": self.network.tables(lexicon), "sampled": {}}

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        return self.network.spelling.warnings(lexicon, "head")

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"network": see Convolution.init}, and further parameters where they are used.

        These are "correction" [V, R] with "projection" [R, D], and the parameters of the sampled
        loss except its word vectors, its "bias" being one number.
        """
        network_key, *array_keys = jax.random.split(key, 3)
        params = {"network": self.network.init(network_key, hidden_size, lexicon)}
        if self.correction:
            shapes = {
                "correction": (len(lexicon), self.correction),
                "projection": (self.correction, hidden_size),
            }
            for array_key, (name, shape) in zip(array_keys, shapes.items(), strict=True):
                params[name] = uniform(array_key, shape, self.initial_scale)
        if self.sampled is not None:
            # Tied, for its word vectors are these: it has none of its own to draw.
            params |= dataclasses.replace(self.sampled, tied=True).init(key, hidden_size, lexicon)
            if self._sampled.bias:
                params["bias"] = params["bias"][0]
        return params

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Keeps the correction of words that both lexicons have; new words get 0."""
        self.network.spelling.check_same_letters(lexicon, new_lexicon)
        if not self.correction:
            return params
        word_rows = [lexicon.ids.get(word, -1) for word in new_lexicon.words]
        correction = np.asarray(params["correction"])[word_rows]
        correction[np.array(word_rows) < 0] = 0
        return {**params, "correction": jnp.asarray(correction)}

    def vectors(self, params: Params, tables: Tables):
        """Computes w of all words, [V, D]."""
        words = jnp.arange(tables["spelling"]["lengths"].shape[0])
        vectors = self.network.vectors(params["network"], tables["spelling"], words)
        if self.correction:
            vectors = self._add_correction(params, vectors, params["correction"])
        return vectors

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        return self.vectors(params, tables)

    def _word_vectors(self, params: Params, tables: Tables, words: jax.Array):
        """Computes w of some words, [..., D]."""
        vectors = self.network.distinct_vectors(params["network"], tables["spelling"], words)
        if self.correction:
            correction = row_lookup.take(params["correction"], words)
            vectors = self._add_correction(params, vectors, correction)
        return vectors

    @staticmethod
    def _add_correction(params, vectors, correction):
        corrected = vectors + products.matmul(correction, params["projection"])
        return corrected.astype(vectors.dtype)

    @property
    def _softmax(self):
        """The head that reads the vectors as its weights."""
        return Softmax(bias=False, soft_cap=self.soft_cap) if self.sampled is None else self.sampled

    def _softmax_params(self, params: Params, tables: Tables, vectors=None):
        """Returns the parameters of `_softmax`, with the vectors of all words as its weights."""
        if vectors is None:
            vectors = self.vectors(params, tables)
        params = {name: params[name] for name in self._scalar_names()}
        params["weights"] = vectors
        if "bias" in params:
            params["bias"] = jnp.broadcast_to(params["bias"], params["weights"].shape[:1])
        return params

    def prepared_shapes(self, tables: Tables, hidden_size: int):
        return len(tables["spelling"]["lengths"]), hidden_size

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        if "correction" not in params:
            return ()
        return (("words", params["correction"].shape[0], len(tables["spelling"]["lengths"])),)

    def _loss(self, params, tables, hidden, targets, key, context):
        if self.sampled is None:
            return super()._loss(params, tables, hidden, targets, key=key, context=context)
        if self.has_open_noise:
            return self._open_noise_loss(params, tables, hidden, targets, key)
        # With vectors that are computed when they are looked up.
        weights = row_lookup.Computed(lambda words: self._word_vectors(params, tables, words))
        scalars = {name: params[name] for name in self._scalar_names()}
        if "bias" in scalars:
            scalars["bias"] = row_lookup.Computed(
                lambda words: jnp.broadcast_to(params["bias"], words.shape)
            )
        softmax_params = {**scalars, "weights": weights}
        return self.sampled.loss(softmax_params, tables["sampled"], hidden, targets, key=key)

    def _open_noise_loss(self, params, tables, hidden, targets, key):
        """Computes the sampled loss with noise words that the letter model spells, [...]; its
        weights are the vectors of the targets, then of the noise words."""
        if key is None:
            raise ValueError("CNNSoftmax.loss draws noise words: give it a key")
        longest, samples = self.network.spelling.longest, self._sampled.samples
        draw = functools.partial(noise.draw, tables["sampled"], longest=longest)
        unit = self._sampled.noise_per
        spellings = draw_per_unit(draw, key, targets.shape, samples, unit)
        target_vectors = self._word_vectors(params, tables, targets.ravel())
        letters = spellings.letters.reshape(-1, longest)
        noise_vectors = self.network.spelled_vectors(params["network"], letters)
        weights = jnp.concatenate([target_vectors, noise_vectors])
        slots = jnp.arange(weights.shape[0])
        bias = jnp.broadcast_to(params["bias"], slots.shape)
        noise_words = NoiseSample(
            slots[targets.size :].reshape(spellings.sizes.shape),
            jnp.ones(spellings.sizes.shape, bool),
            log_expected_count(spellings.log_q, samples, distinct=False),
        )
        return self._sampled.loss_with_noise(
            {**params, "weights": weights, "bias": bias},
            hidden,
            slots[: targets.size].reshape(targets.shape),
            tables["sampled"]["log_q"][targets],
            noise_words,
        )

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        if self.sampled is not None:
            return super()._weighted_loss(
                params, tables, hidden, targets, token_weights, key=key, context=context
            )
        return self._softmax.weighted_loss(
            self._softmax_params(params, tables), {}, hidden, targets, token_weights
        )

    def _as_softmax(self, params, tables, hidden, prepared):
        softmax_params = self._softmax_params(params, tables, prepared)
        return self._softmax._as_softmax(softmax_params, {}, hidden, None)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        return self._softmax.log_prob_and_log_z(
            self._softmax_params(params, tables, prepared), {}, hidden, targets
        )

    def target_scores(self, params, tables, hidden, targets, context, prepared):
        softmax_params = self._softmax_params(params, tables, prepared)
        return self._softmax.target_scores(
            softmax_params, {}, hidden, targets, context=context, prepared=None
        )

    def _log_probs(self, params, tables, hidden, context, prepared):
        return self._softmax.log_probs(self._softmax_params(params, tables, prepared), {}, hidden)

    def _sample(self, params, tables, hidden, key, context, prepared):
        softmax_params = self._softmax_params(params, tables, prepared)
        return self._softmax.sample(softmax_params, {}, hidden, key)

    def _top_k(self, params, tables, hidden, k, context, prepared):
        return self._softmax.top_k(self._softmax_params(params, tables, prepared), {}, hidden, k)
