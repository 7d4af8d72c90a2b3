"""Trains a model: python train.py --config NAME DIR [--set FIELD=VALUE ...]

The same as `python -m zoo train`; it is written in zoo/commands/train.py.
"""

from zoo.commands import program
from zoo.commands.train import main

if __name__ == "__main__":
    program.program(main)
