"""The command line as the user called the program, for sentences that tell of a command."""

import pathlib
import shlex
import shutil
import sys

SCRIPTS = ("train.py", "evaluate.py")


def line() -> str:
    """The program of commands: "zoo", or "python -m zoo"."""
    path = pathlib.Path(sys.argv[0])
    if path.name not in ("zoo", "zoo.exe"):
        return "python -m zoo"
    program = shutil.which("zoo")
    on_path = program is not None and pathlib.Path(program).absolute() == path.absolute()
    return "zoo" if on_path else shlex.quote(sys.argv[0])


def command(name: str) -> str:
    """A command, called the way that this one was.

    Args:
      name: "train" or "evaluate", which are scripts too, or the name of another command.

    Returns:
      "python evaluate.py", "zoo evaluate" or "python -m zoo evaluate".
    """
    script = pathlib.Path(sys.argv[0])
    if script.name in SCRIPTS and f"{name}.py" in SCRIPTS:
        return shlex.join(["python", str(script.with_name(f"{name}.py"))])
    return f"{line()} {name}"


def again() -> str:
    """This very command, for a shell."""
    script = pathlib.Path(sys.argv[0])
    program = shlex.join(["python", str(script)]) if script.name in SCRIPTS else line()
    return f"{program} {shlex.join(sys.argv[1:])}"
