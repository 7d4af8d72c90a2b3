"""Ends of a program that are no bugs."""


class UserError(Exception):
    """Something that the user can put right.

    The message is one sentence: what is wrong, where, and what to do. The entry scripts print it
    without a traceback and leave with exit code 2. Anything else is a bug and keeps its traceback.
    """


class Interrupted(Exception):
    """SIGTERM or Ctrl-C was received, and the state is saved; the message says how to go on."""
