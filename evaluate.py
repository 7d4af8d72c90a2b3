"""Judges a trained model: python evaluate.py DIR [--split NAME] [--data PATH] ...

The same as `python -m zoo evaluate`; it is written in zoo/commands/evaluate.py.
"""

from zoo.commands import program
from zoo.commands.evaluate import main

if __name__ == "__main__":
    program.program(main)
