"""Numbers that the options of commands do not take: `zoo COMMAND ... --option NUMBER`."""

from tests.malformed import readers

CALLS = {"numbers": readers.CALLS["python -m zoo"]}
