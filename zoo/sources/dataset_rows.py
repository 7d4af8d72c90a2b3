"""Rows of data sets read by the library `datasets`: from a hub, saved to disk, or in Parquet."""

from collections.abc import Iterator

from zoo import lazy
from zoo.errors import UserError


def rows(path, *arguments, **options) -> Iterator[dict]:
    """Yields the rows of a data set, loaded by `datasets.load_dataset` or `load_from_disk`."""
    with lazy.extra():
        import datasets  # takes a second to import

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors become ours
    try:
        if arguments:
            yield from datasets.load_dataset(*arguments, **options)
        else:
            yield from datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises many kinds of errors
        message = str(error).strip() or type(error).__name__
        raise UserError(f"{path} cannot be read by datasets: {message.splitlines()[0]}") from error


def hub_name(path: str) -> list[str]:
    """Splits 'hub:NAME:SPLIT' or 'hub:NAME:CONFIGURATION:SPLIT' into the parts after "hub"."""
    parts = path.split(":")[1:]
    if len(parts) not in (2, 3) or not all(parts):
        raise UserError(f"{path} should read hub:NAME:SPLIT or hub:NAME:CONFIGURATION:SPLIT.")
    return parts
