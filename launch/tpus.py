"""Slices of TPUs that are on one host, which is what a run can use: one process, its devices."""

from typing import NamedTuple

from zoo.errors import UserError


class Slice(NamedTuple):
    """kubernetes: the label of its nodes. cloud: the prefix of its accelerator type. runtime: the
    software of its machines. topologies: {chips: topology} of those on one host."""

    kubernetes: str
    cloud: str
    runtime: str
    topologies: dict[int, str]


SLICES = {
    "v5e": Slice(
        "tpu-v5-lite-podslice",
        "v5litepod",
        "v2-alpha-tpuv5-lite",
        {1: "1x1", 4: "2x2", 8: "2x4"},
    ),
    "v6e": Slice("tpu-v6e-slice", "v6e", "v2-alpha-tpuv6e", {1: "1x1", 4: "2x2", 8: "2x4"}),
}


def find(kind: str, chips: int) -> tuple[Slice, str]:
    """(the kind of slice, the topology of so many chips); UserError if they are on no one host."""
    found = SLICES[kind]
    if chips not in found.topologies:
        raise UserError(
            f"--chips {chips}: a run takes the devices of one host, which has 1, 4 or 8 chips of "
            f"{kind}."
        )
    return found, found.topologies[chips]
