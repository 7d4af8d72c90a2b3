"""Lattices of recognisers: HTK's standard lattice format (SLF), and Kaldi's text format.

In either format, a lattice is read as links with words between topologically sorted nodes, from one
start to one end. Scores are natural logarithms, larger is better.
"""

import collections
import dataclasses
import graphlib
import gzip
import itertools
import math
import pathlib
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from zoo.errors import UserError, shortened
from zoo.lab.runs import output_files
from zoo.sources import files

# Labels that are not words: !NULL, !SENT_START, <s>, <sil>, [NOISE], ++UH++, Kaldi's epsilon.
_FILLER = re.compile(r"!.*|<(?!unk>).*>|\[.*\]|\+\+.*\+\+|")
# Smaller posteriors are clamped to this, so that links with posterior 0 stay on paths; posteriors
# of at most 1 + 1e-3, a rounding error, are clamped to 1.
_LEAST_POSTERIOR = 1e-6
_FIELD = re.compile(r"\s*\w+=")
_NODE = re.compile(r"[0-9]{1,18}")
# Number of lines that decide the format of a file.
_HEAD = 1000


@dataclasses.dataclass(frozen=True)
class Link:
    """A link of a lattice."""

    start: int
    end: int
    word: str | None
    acoustic: float  # the recogniser's acoustic score, nats, without its scale
    language: float  # the score of the recogniser's language model, nats, without its scale
    line: int
    # the log of the link's posterior probability, nats, the probability clamped to [1e-6, 1]; 0
    # where the file has none
    log_posterior: float = 0.0
    alignment: str = ""  # transition ids of a lattice of Kaldi, as written: 1_2_3


@dataclasses.dataclass(frozen=True)
class Lattice:
    """A lattice whose nodes all lie on paths from node 0, the start, to the last one, the end."""

    id: str
    nodes: int
    links: tuple[Link, ...]
    acoustic_scale: float = 1.0
    language_scale: float = 1.0
    word_penalty: float = 0.0

    @property
    def words(self) -> list[str]:
        return [*dict.fromkeys(link.word for link in self.links if link.word is not None)]

    @property
    def language_in_posteriors(self) -> bool:
        """Whether links have posteriors p= and no language scores l=."""
        with_posteriors = any(link.log_posterior for link in self.links)
        return with_posteriors and not any(link.language for link in self.links)


def read_files(
    paths: Iterable[str], symbols: Mapping[str, str] | None
) -> Iterator[tuple[str, Lattice]]:
    """Yields (path, lattice) of each lattice; raises UserError for an id that comes twice."""
    path_by_id: dict[str, str] = {}
    for path in paths:
        for lattice in read_lattices(path, files.stem(pathlib.Path(path)), symbols):
            if lattice.id in path_by_id:
                raise UserError(
                    f"{path}: the lattice {shortened(lattice.id, 80)!r} was read from "
                    f"{path_by_id[lattice.id]} already: give each once."
                )
            path_by_id[lattice.id] = path
            yield path, lattice


def read_symbols(path: str) -> dict[str, str]:
    """Reads Kaldi's table of symbols, lines of word and number, as {number: word}."""
    symbols: dict[str, str] = {}
    for line, text in files.read_lines(path, files.LONGEST_SENTENCE):
        parts = text.split()
        if parts and (len(parts) != 2 or not _NODE.fullmatch(parts[1]) or parts[1] in symbols):
            raise UserError(
                f"{path}, line {line}: {shortened(text, 80)!r} is not a word and a number of its "
                "own: give Kaldi's words.txt."
            )
        symbols |= {parts[1]: parts[0]} if parts else {}
    return symbols


def read_lattices(
    path: str, name: str | None = None, symbols: Mapping[str, str] | None = None
) -> Iterator[Lattice]:
    """Reads the lattice of a file in SLF, or those in Kaldi's text format, one at a time."""
    # A file is SLF if most of its first lines begin with a field NAME=.
    lines = (
        line
        for line in files.read_lines(path, files.LONGEST_SENTENCE)
        if not line[1].startswith("#")
    )
    head = [*itertools.islice(lines, _HEAD)]
    filled = [text for _, text in head if text.strip()]
    if not filled:
        raise UserError(
            f"{path} has no lattice in its first lines: give SLF or Kaldi's text format."
        )
    if 2 * sum(_FIELD.match(text) is not None for text in filled) > len(filled):
        if symbols is not None:
            raise UserError(
                f"{path} is in SLF, whose words have no numbers: leave the table of symbols out."
            )
        yield _of_slf(itertools.chain(head, lines), path, name or path)
    else:
        if symbols is None:
            _check_spelled(head, path)
        yield from _of_kaldi(itertools.chain(head, lines), path, symbols)


def _of_slf(lines: Iterable[tuple[int, str]], path: str, name: str) -> Lattice:
    header: dict[str, str] = {}
    at: dict[str, str] = {}
    nodes: dict[str, dict[str, str]] = {}
    links: list[tuple[int, dict[str, str]]] = []
    names: set[str] = set()
    for line, text in lines:
        where, wrong = f"{path}, line {line}", ""
        fields = fields_of(text, where)
        if (node := fields.get("I")) is not None:
            if not _NODE.fullmatch(node):
                node = shortened(node, 80)
                wrong = f"the node I={node} is not a whole number: count nodes from 0"
            elif node in nodes:
                wrong = f"the node {node} comes twice: keep one"
            elif files.parse_number(fields.get("t", "0"), where, "the time t") < 0:
                wrong = f"the time t={fields['t']} is negative: correct it"
            nodes[node] = fields
        elif "J" in fields:
            if fields["J"] in names:
                wrong = f"the link {fields['J']} comes twice: keep one"
            names.add(fields["J"])
            links.append((line, fields))
        elif field := next((field for field in fields if field in header), None):
            wrong = f"the field {field}= is in the header already ({at[field]}): give it once, and "
            wrong += "one lattice a file"
        else:
            header |= fields
            at |= dict.fromkeys(fields, where)
        if wrong:
            raise UserError(f"{where}: {wrong}.")
    if not links:
        raise UserError(
            f"{path}: the lattice has no links J=: get the file again, or leave it out."
        )
    for field, what, count in (("N", "nodes", len(nodes)), ("L", "links", len(links))):
        if field in header and header[field] != str(count):
            raise UserError(
                f"{at[field]}: the header counts {shortened(header[field], 80)} {what}, "
                f"the file {count}: it is cut short, or its header is wrong: get it again."
            )
    # HTK reads and writes the penalty as a natural logarithm, whatever the base.
    defaults = {"base": "1", "acscale": "1", "lmscale": "1", "wdpenalty": "0"}
    base, *scales = (
        files.parse_number(header.get(field, default), at.get(field, path), field)
        for field, default in defaults.items()
    )
    if base < 0:
        raise UserError(
            f"{at['base']}: base={base:g} is not the base of a logarithm: give a number above 0, "
            "where 1 stands for e, or 0 for probabilities."
        )
    scored = {name for name in "alp" if any(name in fields for _, fields in links)}
    scored_links = []
    for line, fields in links:
        where = f"{path}, line {line}"
        for field in "SE":
            if field not in fields:
                raise UserError(f"{where}: the link has no {field}=: name the node there.")
            _check_node(fields[field], nodes, f"{where}: the link has {field}=")
        values = []
        for letter in "alp":
            if letter in scored and letter not in fields:
                what = "posterior" if letter == "p" else "score"
                raise UserError(
                    f"{where}: the link has no {what} {letter}=, and others have one: give it to "
                    "all links or to none."
                )
            default = "0" if base and letter != "p" else "1"
            values.append(files.parse_number(fields.get(letter, default), where, f"{letter}="))
        *scores, posterior = values
        word = fields.get("W", nodes[fields["E"]].get("W"))
        if not 0 <= posterior <= 1 + 1e-3:
            raise UserError(
                f"{where}: the posterior p={fields['p']} is not from 0 to 1: correct it."
            )
        log_posterior = math.log(min(1.0, max(posterior, _LEAST_POSTERIOR)))
        natural = [_natural(value, base, where) for value in scores]
        scored_links.append((fields["S"], fields["E"], _word(word), *natural, line, log_posterior))
    for field in {"start", "end"} & header.keys():
        _check_node(header[field], nodes, f"{at[field]}: the header has {field}=")
    ends = header.get("start"), header.get("end")
    return lattice_of(header.get("U") or name, scored_links, *ends, path, scales)


def _check_node(node, nodes, what):
    if node not in nodes:
        raise UserError(
            f"{what}{shortened(node, 80)}, which is not a node: name one of the nodes at I=."
        )


def _natural(value, base, where):
    """Converts a score to a natural logarithm; base 0 stands for probabilities, 1 for e."""
    if base:
        return value if base == 1 else value * math.log(base)
    if value < 0:
        raise UserError(f"{where}: the probability {value:g} is negative: correct it.")
    return math.log(value) if value else -math.inf


def _word(text):
    return None if text is None or _FILLER.fullmatch(text) else text


def _check_spelled(head, path):
    """Raises UserError if all words in the first lines of a file are numbers."""
    arcs = [(line, text.split()) for line, text in head if len(text.split()) in (4, 5)]
    words = {parts[-2]: line for line, parts in reversed(arcs) if parts[-2] not in ("0", "<eps>")}
    if words and all(map(_NODE.fullmatch, words)):
        raise UserError(
            f"{path}, line {min(words.values())}: the words are numbers, as Kaldi's lattice-copy "
            "writes them: give --words words.txt, or spell them by utils/int2sym.pl -f 3 words.txt."
        )


def _of_kaldi(lines, path, symbols) -> Iterator[Lattice]:
    """Yields the lattices between blank lines: a name, arcs, and final states."""
    for is_filled, block in itertools.groupby(lines, lambda line: bool(line[1].strip())):
        if is_filled:
            yield _of_block(block, path, symbols)


def _of_block(block, path, symbols):
    (first, name), *rest = block
    name = name.strip()
    short, wrong = repr(shortened(name, 80)), ""
    if len(name.split()) != 1 or name.startswith("<"):  # a page of HTML, such as an error 404
        wrong = f"{short} is neither the name of a lattice in Kaldi's text format nor a field of "
        wrong += "SLF: give a file in one of the two"
    elif not rest:
        wrong = f"the lattice {short} has no arcs: write them on the lines below its name"
    elif not any(_NODE.fullmatch(text.split()[0]) for _, text in rest):
        wrong = f"no line below {short} begins with the number of a state, as the arcs of a "
        wrong += "lattice do: give a lattice in SLF or Kaldi's text format"
    if wrong:
        raise UserError(f"{path}, line {first}: {wrong}.")
    links, final, start, before = [], {}, None, None
    for line, text in rest:
        where, parts = f"{path}, line {line}", text.split()
        for state in parts[: 2 if len(parts) > 2 else 1]:
            if not _NODE.fullmatch(state):
                raise UserError(
                    f"{where}: {shortened(state, 80)!r} is not the number of a state: write FROM "
                    "TO WORD GRAPH,ACOUSTIC, and a blank line before the name of the next lattice."
                )
        state, wrong = parts[0], ""
        start = state if start is None else start
        ends, word, costs = (state, "the end"), None, "0,0"
        if state == start and before not in (None, start):
            wrong = f"lines of the first state, {start}, come again behind others: put a blank "
            wrong += "line between two lattices, and the lines of this state together"
        elif len(parts) > 2:
            ends, word, costs = _arc(parts, where, symbols)
        elif state in final:
            wrong = f"the state {state} is final twice: keep one of the lines"
        elif len(parts) == 2 and "," not in parts[1]:
            wrong = f"{shortened(parts[1], 80)!r} is not a cost: write STATE GRAPH,ACOUSTIC for a "
            wrong += "final state, FROM TO WORD GRAPH,ACOUSTIC for an arc"
        else:
            final[state] = where
            costs = parts[1] if len(parts) == 2 else costs
        if wrong:
            raise UserError(f"{where}: {wrong}.")
        before = state
        graph, acoustic, alignment = f"{costs},,".split(",")[:3]
        values = (
            -files.parse_number(cost, where, f"the {kind} cost")
            for kind, cost in (("acoustic", acoustic), ("graph", graph))
        )
        links.append((*ends, word, *values, line, 0.0, alignment))
    reached = {start, *(link[1] for link in links)}
    for state, where in final.items():
        if state not in reached:
            raise UserError(
                f"{where}: no arc leads to the final state {state}: correct the line, or put a "
                "blank line before it if it is the name of the next lattice."
            )
    return lattice_of(name, links, start, "the end", path, (1.0, 1.0, 0.0))


def _arc(parts, where, symbols):
    """Returns (the two states, the word or None, the costs) of an arc of one or two labels."""
    wrong = "the arc has no costs" if "," not in parts[-1] else ""
    wrong = wrong or (f"{len(parts)} fields" if len(parts) not in (4, 5) else "")
    if wrong:
        raise UserError(f"{where}: {wrong}: write FROM TO WORD GRAPH,ACOUSTIC.")
    word = parts[-2]
    if symbols is not None and word != "0":
        if word not in symbols:
            raise UserError(
                f"{where}: {shortened(word, 80)!r} is not a number in the table of symbols: give "
                "the words.txt with which the lattice was decoded."
            )
        word = symbols[word]
    # Of two labels, the first is a transition id.
    costs = f"{parts[-1]},{parts[2]}" if len(parts) == 5 and parts[2] != "0" else parts[-1]
    return (parts[0], parts[1]), None if parts[-2] == "0" else _word(word), costs


def lattice_of(
    name: str,
    links: Sequence[tuple],
    start: Hashable | None,
    end: Hashable | None,
    path: str,
    scales: Sequence[float],
) -> Lattice:
    """Builds a lattice from links between named nodes, without links that lie on no path."""
    starts, ends = {link[0]: None for link in links}, {link[1]: None for link in links}
    if start is None:
        start = _only([node for node in starts if node not in ends], path, name, "start")
    if end is None:
        end = _only([node for node in ends if node not in starts], path, name, "end")
    ahead = _reached(start, links, 0, 1)
    back = _reached(end, links, 1, 0)
    kept = [link for link in links if link[0] in ahead and link[1] in back]
    if not kept:
        raise UserError(
            f"{path}: no path leads from the start of the lattice {shortened(name, 80)} to its "
            "end: get the file again, or name other nodes."
        )
    numbers = _ordered(kept, path, name)
    numbered_links = [
        Link(numbers[link[0]], numbers[link[1]], *link[2:])
        for link in sorted(kept, key=lambda link: numbers[link[0]])
    ]
    if numbers[end] != len(numbers) - 1:
        raise UserError(
            f"{path}: links leave the end of the lattice {shortened(name, 80)}: name another end."
        )
    return Lattice(name, len(numbers), tuple(numbered_links), *scales)


def _only(nodes, path, name, what):
    if len(nodes) != 1:
        raise UserError(
            f"{path}: the lattice {shortened(name, 80)} has {len(nodes)} nodes that could be its "
            f"{what}{''.join(f', {node}' for node in nodes[:4])}: name one in the header, {what}=."
        )
    return nodes[0]


def _reached(node, links, one, other):
    """Returns the nodes that can be reached from a node over links."""
    following = collections.defaultdict(list)
    for link in links:
        following[link[one]].append(link[other])
    reached, waiting = {node}, [node]
    while waiting:
        for new in following[waiting.pop()]:
            if new not in reached:
                reached.add(new)
                waiting.append(new)
    return reached


def _ordered(links, path, name):
    """Sorts nodes topologically: returns {node: number}, or raises UserError for a cycle."""
    sorter: graphlib.TopologicalSorter[Hashable] = graphlib.TopologicalSorter()
    for link in links:
        sorter.add(link[1], link[0])
    try:
        return {node: number for number, node in enumerate(sorter.static_order())}
    except graphlib.CycleError as error:
        cycle = {*itertools.pairwise(error.args[1])}
        link = next(link for link in links if link[:2] in cycle)
        raise UserError(
            f"{path}, line {link[5]}: the link to {link[1]} is on a cycle of the lattice "
            f"{shortened(name, 80)}: correct its ends."
        ) from error


# ------- writers of lattices: HTK's standard lattice format (SLF), and Kaldi's text format
# `read_lattices` reads a written SLF lattice back as an equal lattice, except for the line
# numbers of its links and for posteriors, which are not written; it refuses links of probability 0.
# Kaldi's format has no scales: only the scores of paths stay equal.


def slf_lines(lattice: Lattice) -> Iterator[str]:
    """Yields the lines of a lattice in SLF with line breaks: words on links, natural logarithms."""
    yield f"VERSION=1.0\nUTTERANCE={_quoted(lattice.id)}\n"
    yield f"acscale={lattice.acoustic_scale!r} lmscale={lattice.language_scale!r} "
    yield f"wdpenalty={lattice.word_penalty!r}\nstart=0 end={lattice.nodes - 1}\n"
    yield f"N={lattice.nodes} L={len(lattice.links)}\n"
    for node in range(lattice.nodes):
        yield f"I={node}\n"
    for number, link in enumerate(lattice.links):
        word = "!NULL" if link.word is None else _quoted(link.word)
        yield (
            f"J={number} S={link.start} E={link.end} W={word} a={link.acoustic!r} "
            f"l={link.language!r}\n"
        )


def write_slf(lattice: Lattice, folder: str, inputs: Sequence[str]):
    """Writes a lattice as ID.slf.gz, but over none of the inputs; the same gives the same bytes."""
    if pathlib.PurePath(lattice.id).name != lattice.id:
        raise UserError(
            f"the lattice {shortened(lattice.id, 80)!r} cannot have a file of its name: give "
            "--kaldi."
        )
    content = "".join(slf_lines(lattice)).encode()

    def write(path):
        path.write_bytes(gzip.compress(content, mtime=0))

    pathlib.Path(folder).mkdir(exist_ok=True)
    file = pathlib.Path(folder, f"{lattice.id}.slf.gz")
    output_files.check_each((file, "the lattice"), read=inputs)
    output_files.write(file, write, "the lattice")


def _quoted(text):
    """Formats a value, in quotation marks where needed."""
    if not re.search(r"""["\\\s]|^'|^$""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def kaldi_lines(lattice: Lattice) -> Iterator[str]:
    """Yields the lines of a lattice in Kaldi's text format with line breaks, then a blank line."""
    for text in (lattice.id, *lattice.words):
        if len(text.split()) != 1 or text == "0":
            raise UserError(
                f"Kaldi's form of lattices cannot hold {shortened(text, 80)!r} in the lattice "
                f"{shortened(lattice.id, 80)!r}: write SLF."
            )
    yield f"{lattice.id}\n"
    last = [link for link in lattice.links if link.end == lattice.nodes - 1]
    most = max(collections.Counter(link.start for link in last).values())
    # Links to the end without a word are final states, if no state has several of them.
    final = most == 1 and all(link.word is None for link in last)
    for link in lattice.links:
        penalty = lattice.word_penalty if link.word is not None else 0.0
        graph = lattice.language_scale * link.language + penalty
        costs = f"{0.0 - graph},{0.0 - lattice.acoustic_scale * link.acoustic}"
        if final and link.end == lattice.nodes - 1:
            yield f"{link.start} {costs}{',' if link.alignment else ''}{link.alignment}\n"
        else:
            word = "<eps>" if link.word is None else link.word
            yield f"{link.start} {link.end} {word} {costs},{link.alignment}\n"
    yield "\n" if final else f"{lattice.nodes - 1}\n\n"


# ---------------------- fields NAME=VALUE of a line of HTK's standard lattice format (SLF)
# A value ends at a blank, or stands in quotation marks, single or double. A backslash makes the
# next character a part of the value; before three octal digits it stands for a byte (HTK Book,
# "Strings and names").

# A field of SLF: a value in quotation marks, or one that ends at a blank that has no backslash.
_NAMED = re.compile(
    r"""\s*([^\s=]+)=("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?!")(?:\\.|[^\s\\])*)(?=\s|$)"""
)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
# Long names of fields, and the short ones.
_SHORT = {
    **{"UTTERANCE": "U", "NODES": "N", "LINKS": "L", "START": "S", "END": "E", "WORD": "W"},
    **{"time": "t", "acoustic": "a", "language": "l"},
}


def fields_of(text: str, where: str) -> dict[str, str]:
    """Reads a line's fields, {short name: value}; long names mean the same as short ones."""
    fields: dict[str, str] = {}
    end = 0
    while match := _NAMED.match(text, end):
        name, value = match.groups()
        if _SHORT.get(name, name) in fields:
            raise UserError(f"{where}: the field {name}= comes twice: keep one.")
        fields[_SHORT.get(name, name)] = _unescaped(value, where)
        end = match.end()
    if rest := text[end:].split(maxsplit=1):
        if '="' in rest[0]:
            raise UserError(
                f"{where}: the value of {shortened(rest[0], 80)!r} has a quotation mark only at "
                "its start: write one at both ends."
            )
        raise UserError(
            f"{where}: {shortened(rest[0], 80)!r} is not a field NAME=VALUE of SLF: correct the "
            "line."
        )
    return fields


def _unescaped(value, where):
    """Returns a value without quotation marks around it and backslashes before characters."""

    def byte(match):
        escaped = match[1]
        return bytes([int(escaped, 8)]) if len(escaped) == 3 else escaped

    if value[:1] in ('"', "'") and len(value) > 1 and value[-1] == value[0]:
        value = value[1:-1]
    if "\\" not in value:
        return value
    try:
        return _ESCAPED.sub(byte, value.encode()).decode()
    except ValueError as error:
        raise UserError(
            f"{where}: {shortened(value, 80)!r} has escapes that are not UTF-8: correct them."
        ) from error
