"""Functions of tokens where arrays lie over the explicit axes of a mesh, as `jax.make_mesh` makes
them: the compiler finds what is to be sent, and results lie as the tokens do."""

import functools
import inspect

from jax.sharding import PartitionSpec

from zoo.arrays import layouts


def over_tokens(argument: str, axes: int = 1):
    """Decorates a function of tokens, so that it can be called with arrays on explicit axes.

    Args:
      argument: the name of an array [..., ?] of it, whose leading axes are those of the tokens.
      axes: how many of its axes are not.
    """

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*positional, **named):
            mesh = layouts.explicit_mesh((positional, named))
            if mesh is None:
                return function(*positional, **named)
            bound = signature.bind(*positional, **named)
            of_tokens = layouts.spec_of(bound.arguments[argument])[:-axes]

            def spec(result):
                if result.ndim < len(of_tokens):
                    return PartitionSpec()
                return PartitionSpec(*of_tokens, *[None] * (result.ndim - len(of_tokens)))

            def whole(given):
                return function(*given[0], **given[1])

            return layouts.automatic(whole, (bound.args, bound.kwargs), mesh, spec)

        return called

    return decorate
