"""Tables read as strangers read them: by pandas, and by R, whose rules are written out here."""

import pandas


def by_pandas(path, **options):
    """pandas.read_csv with nothing said but the tab."""
    return pandas.read_csv(path, sep="\t", **options)


def by_r(path, quotes='"', comment="", missing="NA"):
    """The header and rows of strings, None where missing, as R's scan takes fields with sep="\\t".

    The defaults are those of read.delim; those of read.table(sep="\\t", header=TRUE) are quotes
    "\\"'" and comment "#". A mark of `quotes` begins a quoted part anywhere in a field, two of it
    within are one, and all else within is text; comments begin outside of quotes alone.
    """
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    rows, row, field, place = [], [], "", 0
    while place < len(text):
        letter = text[place]
        place += 1
        if letter in quotes:
            while place < len(text):
                if text[place] == letter and text[place + 1 : place + 2] != letter:
                    break
                place += text[place] == letter
                field += text[place]
                place += 1
            place += 1
        elif letter in "\t\n":
            row.append(field)
            field = ""
            if letter == "\n":
                rows.append(row)
                row = []
        elif comment and letter == comment:
            place = text.find("\n", place)
        else:
            field += letter
    assert not row and not field, "the last line has no end"
    header, *rows = rows
    assert {*map(len, rows)} <= {len(header)}, "not all rows have as many fields"
    return [
        {
            name: None if value in (missing, "") else value
            for name, value in zip(header, row, strict=True)
        }
        for row in rows
    ]
