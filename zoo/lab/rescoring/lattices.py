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
from zoo.sources import files, foreign_formats

# Labels that are not words: !NULL, !SENT_START, <s>, <sil>, [NOISE], ++UH++, Kaldi's epsilon.
_FILLER = re.compile(r"!.*|<(?!unk>).*>|\[.*\]|\+\+.*\+\+|")
# Smaller posteriors are clamped to this, so that links with posterior 0 stay on paths; posteriors
# of at most 1 + 1e-3, a rounding error, are clamped to 1.
_LEAST_POSTERIOR = 1e-6
_FIELD_START = re.compile(r"\s*\w+=")
_NUMBER = re.compile(r"[0-9]{1,18}")
# Number of lines that decide the format of a file.
_HEAD_LINES = 1000
# Scores of SLF's links, and the fields of the header with their scales: acoustic scores, HTK's
# pronunciations and SRILM's durations; then the scores of language models.
_SCALES = {"a": "acscale", "r": "prscale", "ds": "duscale", "l": "lmscale", "n": "ngscale"}
# All fields of nodes and links that are read, or that change no score.
_LINK_FIELDS = {*"IJSEtWvdsp", "states", *_SCALES}
# Fields of the header that may change words or scores, and are not read.
_HEADER_CHANGE = re.compile(r"SUBLAT=|dir=[^f]|(?!wdp|(t|am|ac|pr|du|lm|ng)s)\w+(scale|penalty)=")


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
        """The different words of the links, in their order."""
        return [*dict.fromkeys(link.word for link in self.links if link.word is not None)]


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
    """Reads Kaldi's lines of word and number as {number: word}; raises UserError for other
    lines."""
    symbols: dict[str, str] = {}
    for line, text in files.read_lines(path, files.LONGEST_SENTENCE):
        parts = text.split()
        if parts and (len(parts) != 2 or not _NUMBER.fullmatch(parts[1]) or parts[1] in symbols):
            raise UserError(
                f"{path}, line {line}: {shortened(text, 80)!r} is not a word and a number of its "
                "own: give Kaldi's words.txt."
            )
        symbols |= {parts[1]: parts[0]} if parts else {}
    return symbols


def read_lattices(
    path: str, name: str | None = None, symbols: Mapping[str, str] | None = None
) -> Iterator[Lattice]:
    """Reads the lattice of a file in SLF, or the lattices in Kaldi's text format, one at a time."""
    # A file is SLF if most of its first lines begin with a field NAME=.
    lines = (
        line
        for line in files.read_lines(path, files.LONGEST_SENTENCE)
        if not line[1].startswith("#")
    )
    head = [*itertools.islice(lines, _HEAD_LINES)]
    filled_lines = [text for _, text in head if text.strip()]
    if not filled_lines:
        raise UserError(
            f"{path} has no lattice in its first lines: give SLF or Kaldi's text format."
        )
    if 2 * sum(_FIELD_START.match(text) is not None for text in filled_lines) > len(filled_lines):
        if symbols is not None:
            raise UserError(
                f"{path} is in SLF, whose words have no numbers: leave the table of symbols out."
            )
        yield _parse_slf(itertools.chain(head, lines), path, name or path)
    else:
        remedy = "give a lattice in SLF or Kaldi's text format"
        foreign_formats.check(filled_lines, path, remedy, ["a lattice"])
        if symbols is None:
            _check_spelled(head, path)
        blocks = itertools.groupby(itertools.chain(head, lines), lambda line: not line[1].strip())
        for is_blank, block in blocks:
            if not is_blank:
                yield _parse_kaldi(block, path, symbols)


def _parse_slf(lines: Iterable[tuple[int, str]], path: str, name: str) -> Lattice:
    """Parses numbered lines of SLF or raises UserError; `name`: the id if the header has none."""
    header: dict[str, str] = {}
    locations: dict[str, str] = {}
    nodes: dict[str, dict[str, str]] = {}
    links: list[tuple[int, dict[str, str]]] = []
    names: set[str] = set()
    for line, text in lines:
        location, error = f"{path}, line {line}", ""
        fields = parse_fields(text, location)
        _check_fields(fields, location)
        node = fields.get("I")
        if node is not None:
            if not _NUMBER.fullmatch(node):
                node = shortened(node, 80)
                error = f"the node I={node} is not a whole number: count nodes from 0"
            elif node in nodes:
                error = f"the node {node} comes twice: keep one"
            elif files.parse_number(fields.get("t", "0"), location, "the time t") < 0:
                error = f"the time t={fields['t']} is negative: correct it"
            nodes[node] = {name: value for name, value in fields.items() if name != "p"}
        elif "J" in fields:
            if fields["J"] in names:
                error = f"the link {fields['J']} comes twice: keep one"
            names.add(fields["J"])
            links.append((line, fields))
        elif field := next((field for field in fields if field in header), None):
            error = f"the field {field}= is in the header already ({locations[field]}): give it "
            error += "once, and one lattice a file"
        else:
            header |= fields
            locations |= dict.fromkeys(fields, location)
        if error:
            raise UserError(f"{location}: {error}.")
    if not links:
        raise UserError(
            f"{path}: the lattice has no links J=: get the file again, or leave it out."
        )
    for field, noun, count in (("N", "nodes", len(nodes)), ("L", "links", len(links))):
        if field in header and header[field] != str(count):
            raise UserError(
                f"{locations[field]}: the header counts {shortened(header[field], 80)} {noun}, "
                f"the file {count}: it is cut short, or its header is wrong: get it again."
            )
    # A link has the fields of the node that it leads to, unless they are on the link itself.
    links = [(line, nodes.get(fields.get("E", ""), {}) | fields) for line, fields in links]
    link_fields = {name for _, fields in links for name in fields}
    score_names = [name for name in _SCALES if name in link_fields or name in "al"]
    # HTK reads and writes the penalty as a natural logarithm, whatever the base, and takes 0 for a
    # prscale that is missing, where SRILM takes 1.
    defaults = {"base": "1", "wdpenalty": "0", **{_SCALES[n]: "missing" for n in score_names}}
    defaults |= {"acscale": "1", "lmscale": "1"}
    base, penalty, *scales = (
        files.parse_number(header.get(field, default), locations.get(field, path), field)
        for field, default in defaults.items()
    )
    if base < 0:
        raise UserError(
            f"{locations['base']}: base={base:g} is not the base of a logarithm: give a number "
            "above 0, where 1 stands for e, or 0 for probabilities."
        )
    arcs, language = [], score_names.index("l")
    for line, fields in links:
        location = f"{path}, line {line}"
        for field in "SE":
            if field not in fields:
                raise UserError(f"{location}: the link has no {field}=: name the node there.")
            _check_node(fields[field], nodes, f"{location}: the link has {field}=")
        values = []
        for field in (*score_names, "p"):
            if field in link_fields and field not in fields:
                noun = "posterior" if field == "p" else "score"
                raise UserError(
                    f"{location}: the link has no {noun} {field}=, and others have one: give it "
                    "to all links or to none."
                )
            default = "0" if base and field != "p" else "1"
            values.append(files.parse_number(fields.get(field, default), location, f"{field}="))
        *scores, posterior = values
        if not 0 <= posterior <= 1 + 1e-3:
            raise UserError(
                f"{location}: the posterior p={fields['p']} is not from 0 to 1: correct it."
            )
        log_posterior = math.log(min(1.0, max(posterior, _LEAST_POSTERIOR)))
        logs = [_natural_log(value, base, location) for value in scores]
        if len(logs) > 2:  # more than a= and l=
            terms = [scale and scale * log for scale, log in zip(scales, logs, strict=True)]
            logs = [sum(terms[:language]), sum(terms[language:])]
        arcs.append((fields["S"], fields["E"], _word(fields.get("W")), *logs, line, log_posterior))
    for field in {"start", "end"} & header.keys():
        _check_node(header[field], nodes, f"{locations[field]}: the header has {field}=")
    start: Hashable = header.get("start")
    targets = {arc[1] for arc in arcs}
    sources = [header["start"]] if start else [arc[0] for arc in arcs if arc[0] not in targets]
    for node in dict.fromkeys(sources):
        # A word on the first node is that of a link to it, without scores.
        if (word := _word(nodes[node].get("W"))) is not None:
            arcs.append(((node,), node, word, 0.0, 0.0, links[0][0], 0.0))
            start = start and (node,)
    ends = start, header.get("end")
    scales = scales if len(scales) == 2 else [1.0, 1.0]
    return build_lattice(header.get("U") or name, arcs, *ends, path, (*scales, penalty))


def _check_fields(fields, location):
    """Raises UserError for a field that may change the words or the scores of paths, unread."""
    in_header = fields.keys().isdisjoint("IJ")
    for name, value in fields.items():
        field = f"{name}={value}"
        if _HEADER_CHANGE.match(field) if in_header else name not in _LINK_FIELDS:
            raise UserError(
                f"{location}: {shortened(field, 80)} may change the words or scores of paths, and "
                "is not read: write a forward lattice without it, with sublattices expanded."
            )


def _check_node(node, nodes, prefix):
    """Raises UserError, whose message begins with the prefix, unless the file has the node."""
    if node not in nodes:
        raise UserError(
            f"{prefix}{shortened(node, 80)}, which is not a node: name one of the nodes at I=."
        )


def _natural_log(value, base, location):
    """Converts a score to a natural logarithm; base 0 stands for probabilities, 1 for e. Raises
    UserError for a negative probability."""
    if base:
        return value if base == 1 else value * math.log(base)
    if value < 0:
        raise UserError(f"{location}: the probability {value:g} is negative: correct it.")
    return math.log(value) if value else -math.inf


def _word(text):
    """Returns a label if it is a word; None for a filler such as silence, and for None."""
    return None if text is None or _FILLER.fullmatch(text) else text


def _check_spelled(head, path):
    """Raises UserError if the words are numbers, as in a lattice that needs a table of symbols."""
    arcs = [(line, text.split()) for line, text in head if len(text.split()) in (4, 5)]
    words = {parts[-2]: line for line, parts in reversed(arcs) if parts[-2] not in ("0", "<eps>")}
    if words and all(map(_NUMBER.fullmatch, words)):
        raise UserError(
            f"{path}, line {min(words.values())}: the words are numbers, as Kaldi's lattice-copy "
            "writes them: give --words words.txt, or spell them by utils/int2sym.pl -f 3 words.txt."
        )


def _parse_kaldi(block, path, symbols):
    """Parses numbered lines of a lattice in Kaldi's text format, name, arcs and final states, or
    raises UserError."""
    (name_line, name), *arc_lines = block
    name = name.strip()
    has_arcs = any(_NUMBER.fullmatch(text.split()[0]) for _, text in arc_lines)
    if len(name.split()) != 1 or not has_arcs:
        raise UserError(
            f"{path}, line {name_line}: {shortened(name, 80)!r} is neither the name of a lattice "
            "in Kaldi's text format, with arcs on the lines below it, nor a field of SLF: give a "
            "file in one of the two."
        )
    links, final, start, previous_state = [], {}, None, None
    for line, text in arc_lines:
        location, parts = f"{path}, line {line}", text.split()
        for state in parts[: 2 if len(parts) > 2 else 1]:
            if not _NUMBER.fullmatch(state):
                raise UserError(
                    f"{location}: {shortened(state, 80)!r} is not the number of a state: write "
                    "FROM TO WORD GRAPH,ACOUSTIC, and a blank line before the name of the next "
                    "lattice."
                )
        state, error = parts[0], ""
        start = state if start is None else start
        ends, word, costs = (state, "the end"), None, "0,0"
        if state == start and previous_state not in (None, start):
            error = f"lines of the first state, {start}, come again behind others: put a blank "
            error += "line between two lattices, and the lines of this state together"
        elif len(parts) > 2:
            ends, word, costs = _parse_arc(parts, location, symbols)
        elif state in final:
            error = f"the state {state} is final twice: keep one of the lines"
        elif len(parts) == 2 and "," not in parts[1]:
            error = f"{shortened(parts[1], 80)!r} is not a cost: write STATE GRAPH,ACOUSTIC for a "
            error += "final state, FROM TO WORD GRAPH,ACOUSTIC for an arc"
        else:
            final[state] = location
            costs = parts[1] if len(parts) == 2 else costs
        if error:
            raise UserError(f"{location}: {error}.")
        previous_state = state
        graph, acoustic, alignment = f"{costs},,".split(",")[:3]
        values = (
            -files.parse_number(cost, location, f"the {kind} cost")
            for kind, cost in (("acoustic", acoustic), ("graph", graph))
        )
        links.append((*ends, word, *values, line, 0.0, alignment))
    reached = {start, *(link[1] for link in links)}
    for state, location in final.items():
        if state not in reached:
            raise UserError(
                f"{location}: no arc leads to the final state {state}: correct the line, or put a "
                "blank line before it if it is the name of the next lattice."
            )
    return build_lattice(name, links, start, "the end", path, (1.0, 1.0, 0.0))


def _parse_arc(parts, location, symbols):
    """Parses the fields of an arc as ((from, to), word or None, costs); `symbols` maps its word."""
    error = "the arc has no costs" if "," not in parts[-1] else ""
    error = error or (f"{len(parts)} fields" if len(parts) not in (4, 5) else "")
    if error:
        raise UserError(f"{location}: {error}: write FROM TO WORD GRAPH,ACOUSTIC.")
    word = parts[-2]
    if symbols is not None and word != "0":
        if word not in symbols:
            raise UserError(
                f"{location}: {shortened(word, 80)!r} is not a number in the table of symbols: "
                "give the words.txt with which the lattice was decoded."
            )
        word = symbols[word]
    # Of two labels, the first is a transition id.
    costs = f"{parts[-1]},{parts[2]}" if len(parts) == 5 and parts[2] != "0" else parts[-1]
    return (parts[0], parts[1]), None if parts[-2] == "0" else _word(word), costs


def build_lattice(
    name: str,
    links: Sequence[tuple],
    start: Hashable | None,
    end: Hashable | None,
    path: str,
    scales: Sequence[float],
) -> Lattice:
    """Builds a lattice from tuples (start, end, *further fields of Link) between named nodes,
    without links that lie on no path.

    A start of None stands for the only node without links to it, an end of None for the only node
    without links from it. `scales` are the last fields of Lattice. Raises UserError for a cycle, or
    if no path or several such nodes exist.
    """
    starts, ends = {link[0]: None for link in links}, {link[1]: None for link in links}
    if start is None:
        start = _only_node([node for node in starts if node not in ends], path, name, "start")
    if end is None:
        end = _only_node([node for node in ends if node not in starts], path, name, "end")
    from_start = _reachable_nodes(start, links, 0, 1)
    to_end = _reachable_nodes(end, links, 1, 0)
    path_links = [link for link in links if link[0] in from_start and link[1] in to_end]
    if not path_links:
        raise UserError(
            f"{path}: no path leads from the start of the lattice {shortened(name, 80)} to its "
            "end: get the file again, or name other nodes."
        )
    numbers = _number_nodes(path_links, path, name)
    numbered_links = [
        Link(numbers[link[0]], numbers[link[1]], *link[2:])
        for link in sorted(path_links, key=lambda link: numbers[link[0]])
    ]
    if numbers[end] != len(numbers) - 1:
        raise UserError(
            f"{path}: links leave the end of the lattice {shortened(name, 80)}: name another end."
        )
    return Lattice(name, len(numbers), tuple(numbered_links), *scales)


def _only_node(nodes, path, name, role):
    """Returns the only possible start or end; raises UserError for several nodes or none."""
    if len(nodes) != 1:
        raise UserError(
            f"{path}: the lattice {shortened(name, 80)} has {len(nodes)} nodes that could be its "
            f"{role}{''.join(f', {node}' for node in nodes[:4])}: name one in the header, {role}=."
        )
    return nodes[0]


def _reachable_nodes(node, links, source, target):
    """Returns the nodes that links reach from a node; `source`, `target` index a link's ends, 0 or
    1."""
    neighbours = collections.defaultdict(list)
    for link in links:
        neighbours[link[source]].append(link[target])
    reached, pending = {node}, [node]
    while pending:
        for neighbour in neighbours[pending.pop()]:
            if neighbour not in reached:
                reached.add(neighbour)
                pending.append(neighbour)
    return reached


def _number_nodes(links, path, name):
    """Numbers nodes in topological order, {node: number}; raises UserError for a cycle."""
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
    """Formats a lattice as lines of SLF, with line breaks: words on links, natural logarithms."""
    yield f"VERSION=1.0\nUTTERANCE={_quote(lattice.id)}\n"
    yield f"acscale={lattice.acoustic_scale!r} lmscale={lattice.language_scale!r} "
    yield f"wdpenalty={lattice.word_penalty!r}\nstart=0 end={lattice.nodes - 1}\n"
    yield f"N={lattice.nodes} L={len(lattice.links)}\n"
    for node in range(lattice.nodes):
        yield f"I={node}\n"
    for number, link in enumerate(lattice.links):
        word = "!NULL" if link.word is None else _quote(link.word)
        yield (
            f"J={number} S={link.start} E={link.end} W={word} a={link.acoustic!r} "
            f"l={link.language!r}\n"
        )


def write_slf(lattice: Lattice, folder: str, inputs: Sequence[str]):
    """Writes a lattice as FOLDER/ID.slf.gz, reproducibly; refuses to overwrite an input file."""
    if pathlib.PurePath(lattice.id).name != lattice.id:
        raise UserError(
            f"the lattice {shortened(lattice.id, 80)!r} cannot have a file of its name: give "
            "--kaldi."
        )
    content = "".join(slf_lines(lattice)).encode()
    compressed = gzip.compress(content, mtime=0)  # without the time
    pathlib.Path(folder).mkdir(exist_ok=True)
    file = pathlib.Path(folder, f"{lattice.id}.slf.gz")
    output_files.check_each((file, "the lattice"), inputs=inputs)
    output_files.write(file, lambda path: path.write_bytes(compressed), "the lattice")


def _quote(text):
    """Formats the value of a field of SLF, in quotation marks and with escapes where needed."""
    if not re.search(r"""["\\\s]|^'|^$""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def kaldi_lines(lattice: Lattice) -> Iterator[str]:
    """Formats a lattice as lines of Kaldi's text format, with line breaks and a last blank line;
    raises UserError for words that it cannot hold."""
    for text in (lattice.id, *lattice.words):
        if len(text.split()) != 1 or text == "0":
            raise UserError(
                f"Kaldi's form of lattices cannot hold {shortened(text, 80)!r} in the lattice "
                f"{shortened(lattice.id, 80)!r}: write SLF."
            )
    yield f"{lattice.id}\n"
    end_links = [link for link in lattice.links if link.end == lattice.nodes - 1]
    max_final_links = max(collections.Counter(link.start for link in end_links).values())
    # Links to the end without a word are final states, if no state has several of them.
    has_final_states = max_final_links == 1 and all(link.word is None for link in end_links)
    for link in lattice.links:
        penalty = lattice.word_penalty if link.word is not None else 0.0
        graph = lattice.language_scale * link.language + penalty
        costs = f"{0.0 - graph},{0.0 - lattice.acoustic_scale * link.acoustic}"
        if has_final_states and link.end == lattice.nodes - 1:
            yield f"{link.start} {costs}{',' if link.alignment else ''}{link.alignment}\n"
        else:
            word = "<eps>" if link.word is None else link.word
            yield f"{link.start} {link.end} {word} {costs},{link.alignment}\n"
    yield "\n" if has_final_states else f"{lattice.nodes - 1}\n\n"


# ---------------------- fields NAME=VALUE of a line of HTK's standard lattice format (SLF)
# A value ends at a blank, or stands in quotation marks, single or double. A backslash makes the
# next character a part of the value; before three octal digits it stands for a byte (HTK Book,
# "Strings and names").

# A field of SLF: a value in quotation marks, or one that ends at a blank that has no backslash.
_FIELD_AND_VALUE = re.compile(
    r"""\s*([^\s=]+)=("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?!")(?:\\.|[^\s\\])*)(?=\s|$)"""
)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
# Long names of fields, and the short ones.
_SHORT = {
    **{"UTTERANCE": "U", "NODES": "N", "LINKS": "L", "START": "S", "END": "E", "WORD": "W"},
    **{"time": "t", "acoustic": "a", "language": "l", "ngram": "n", "var": "v", "div": "d"},
}


def parse_fields(text: str, location: str) -> dict[str, str]:
    """Parses a line of SLF, NAME=VALUE ..., as {short name: value}, or raises UserError."""
    fields: dict[str, str] = {}
    end = 0
    while match := _FIELD_AND_VALUE.match(text, end):
        name, value = match.groups()
        if _SHORT.get(name, name) in fields:
            raise UserError(f"{location}: the field {name}= comes twice: keep one.")
        fields[_SHORT.get(name, name)] = _unescape(value, location)
        end = match.end()
    remainder = text[end:].split(maxsplit=1)
    if remainder:
        if '="' in remainder[0]:
            raise UserError(
                f"{location}: the value of {shortened(remainder[0], 80)!r} has a quotation mark "
                "only at its start: write one at both ends."
            )
        raise UserError(
            f"{location}: {shortened(remainder[0], 80)!r} is not a field NAME=VALUE of SLF: "
            "correct the line."
        )
    return fields


def _unescape(value, location):
    """Removes paired quotation marks around a value, and reads its escapes: a backslash before a
    character, or before three octal digits of a byte of UTF-8."""

    def byte(match):
        """Returns the bytes that an escape sequence stands for."""
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
            f"{location}: {shortened(value, 80)!r} has escapes that are not UTF-8: correct them."
        ) from error
