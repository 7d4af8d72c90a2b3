"""Rows of data sets that the library `datasets` reads: those of a hub, saved ones, and Parquet
files."""

from collections.abc import Iterator

from zoo import lazy
from zoo.errors import UserError


def rows(path, *arguments, **options) -> Iterator[dict]:
    """The rows of what `datasets.load_dataset` makes of the arguments; without any, of the data set
    that is saved in the folder `path`.

    Raises:
      UserError: the library cannot read it; says why in its words.
    """
    with lazy.extra():
        import datasets  # a second of import that other text does without

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors become ours
    try:
        if arguments:
            yield from datasets.load_dataset(*arguments, **options)
        else:
            yield from datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises many kinds for what is wrong with a file
        message = str(error).strip() or type(error).__name__
        raise UserError(f"{path} cannot be read by datasets: {message.splitlines()[0]}") from error


def hub_name(path: str) -> list[str]:
    """The parts of 'hub:NAME:SPLIT' or 'hub:NAME:CONFIGURATION:SPLIT' after the first."""
    parts = path.split(":")[1:]
    if len(parts) not in (2, 3) or not all(parts):
        raise UserError(f"{path} should read hub:NAME:SPLIT or hub:NAME:CONFIGURATION:SPLIT.")
    return parts
