"""Counts of transfers between devices and of matrix products in a compiled program's text."""

import collections
import dataclasses
import functools
import math
import re

from zoo.lab.training.product_counts import Product, operations

KINDS = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One transfer between devices in a compiled program."""

    kind: str  # one of KINDS
    size: int  # bytes of its results on a device
    devices: int  # number of devices in each group that exchanges data
    in_loop: bool  # whether it runs at each iteration of a loop
    times: int  # how often it runs

    @property
    def sent(self) -> float:
        """Bytes that each device sends each time, if the devices of a group form a ring."""
        peers = self.devices - 1
        match self.kind:
            case "all-reduce":  # every part is summed around the ring, then passed around
                return 2 * self.size * peers / self.devices
            case "reduce-scatter":  # the result is one of as many parts as there are devices
                return self.size * peers
            case "collective-permute":
                return self.size
        return self.size * peers / self.devices


def read(text: str) -> tuple[tuple[Collective, ...], collections.Counter[Product]]:
    """Returns (collectives, {matrix product: how often it runs}) of a compiled program's text.

    The body of a loop counts as often as it runs, or once if that depends on values. A condition
    counts as its branch with the most bytes sent, and with the most operations.
    """
    bodies: dict[str, list[str]] = {}
    name = entry = ""
    everywhere = math.prod(map(int, re.findall(r"(?:num_partitions|replica_count)=(\d+)", text)))
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if head:
            name = head[2]
            entry = name if head[1] else entry
        bodies.setdefault(name, []).append(line)
    # TPUs share an asynchronous collective out over what runs meanwhile: only its start counts.
    later_parts = {
        name
        for name, lines in bodies.items()
        if name.startswith("async_collective_fusion")
        or any('custom_call_target="AsyncCollectiveDone"' in line for line in lines)
    }

    @functools.cache
    def count_body(name):
        """Returns ({(kind, size, devices, in loop): times}, products) of a computation with its
        callees."""
        sent: collections.Counter[tuple[str, int, int, bool]] = collections.Counter()
        products = _products(bodies[name])
        for line in bodies[name]:
            match = re.search(rf"= (.*?) ({'|'.join(KINDS)})(-start)?\(", line)
            if match and name not in later_parts:
                devices, size = _group(line, everywhere), _bytes(match[1])
                if match[3] and match[2] == "all-gather":  # its type has the operand, too
                    size = size * devices // (devices + 1)
                elif match[3] and match[2] == "reduce-scatter":  # so has this one's
                    size //= devices + 1
                elif match[3] and match[2] == "collective-permute":
                    size //= 2
                sent[match[2], size, devices, False] += 1
            for names, times in _calls(line, bodies):
                called = [count_body(callee) for callee in names]
                collectives = max((counts for counts, _ in called), key=_sent)
                for (*collective, in_loop), often in collectives.items():
                    sent[*collective, in_loop or " while(" in line] += often * times
                for product, often in max((counts for _, counts in called), key=operations).items():
                    products[product] += often * times
        return sent, products

    sent, products = count_body(entry)
    collectives = tuple(
        Collective(kind, size, devices, in_loop, times)
        for (kind, size, devices, in_loop), times in sent.items()
    )
    return collectives, products


def _group(line, everywhere) -> int:
    """Returns the number of devices in each group of a transfer; by default all."""
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(match[1].split(","))
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(match[1])
    if match := re.search(r"replica_groups=mesh\[(.*?)\][^{]* \{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
        return math.prod(int(sizes[name]) for name in re.findall(r"'(\w+)'", match[2]))
    return everywhere


def _sent(counted) -> int:
    return sum(size * times for (_, size, *_), times in counted.items())


def _calls(line, bodies):
    """Yields (computations of which one is called, how often) for the calls in a line."""
    if " while(" in line:
        trips = re.findall(r'known_trip_count":\{"n":"(\d+)"', line)
        for condition in re.findall(r"condition=%?([\w.\-]+)", line) if not trips else ():
            # TPU's compiler does not tell it: the counter is compared with the only constant.
            text = "\n".join(bodies.get(condition, ()))
            if "direction=LT" in text:
                trips = re.findall(r"= s32\[\]\S* constant\((\d+)\)", text)
        yield re.findall(r"body=%?([\w.\-]+)", line), int(trips[0]) if len(trips) == 1 else 1
    elif " conditional(" in line:
        branches = re.search(r"branch_computations=\{(.*?)\}", line)
        either = (
            branches[1]
            if branches
            else ",".join(re.findall(r"(?:true|false)_computation=%?([\w.\-]+)", line))
        )
        yield re.findall(r"[\w.\-]+", either), 1
    else:
        for name in re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", line):
            yield [name], 1


def _sizes(shape: str) -> list[int]:
    return [int(size) for size in shape.split(",") if size]


def _bytes(shapes: str) -> int:
    """Counts the bytes of the arrays of a type such as "(f32[5,7], pred[])"."""
    arrays = re.findall(r"(?:pred|[a-z]+(\d+)\w*)\[([\d,]*)\]", shapes)
    return sum(max(1, int(bits or 8) // 8) * math.prod(_sizes(shape)) for bits, shape in arrays)


def _products(lines) -> collections.Counter[Product]:
    """Counts the matrix products in the lines of a computation."""
    arrays: dict[str, tuple[list[int], int]] = {}  # sizes and bytes
    products: collections.Counter[Product] = collections.Counter()
    for line in lines:
        result = re.match(r"\s*(?:ROOT )?%([\w.\-]+) = (\w+\[([\d,]*)\])", line)
        if not result:
            continue
        sizes, size = arrays[result[1]] = _sizes(result[3]), _bytes(result[2])
        product = re.search(
            r" dot\(%([\w.\-]+), %([\w.\-]+)\).*lhs_contracting_dims=\{([\d,]*)\}", line
        )
        if product:
            (left_sizes, left_bytes), (_, right_bytes) = arrays[product[1]], arrays[product[2]]
            summed = math.prod(left_sizes[axis] for axis in _sizes(product[3]))
            products[Product(2 * summed * math.prod(sizes), left_bytes + right_bytes + size)] += 1
    return products
