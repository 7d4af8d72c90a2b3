"""Remote file names, checked before files are written below a local folder.

Object stores and hubs accept any names: "run/../../.bashrc" is valid there, and leads out of a
folder that it is joined to.
"""

import re
from collections.abc import Iterable

from zoo.errors import UserError, shortened

# Windows splits names at both slashes, and reads a letter with a colon as a drive.
_SLASHES = re.compile(r"[/\\]")
_DISK = re.compile(r"[a-zA-Z]:")
_NOWHERE = ("", ".", "..")


def leads_out(name: str) -> bool:
    """Whether a name is absolute, or has a part that is empty, "." or ".."."""
    return bool(_DISK.match(name)) or any(part in _NOWHERE for part in _SLASHES.split(name))


def check(names: Iterable[str], where: str):
    """Checks that names, joined to a folder, name files below it."""
    for name in names:
        if leads_out(name):
            raise refusal(where, name)


def refusal(where: str, name: str) -> UserError:
    """Returns the error of an object whose name `leads_out`."""
    return UserError(
        f"{where} has an object whose name, {shortened(name)!r}, is absolute or has an empty part, "
        ". or .., so that it could be written outside the folder of the run: delete or rename that "
        "object, or give another address."
    )
