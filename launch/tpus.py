"""Slices of TPUs: on one host, or on several, of which each has a process of the run."""

from typing import NamedTuple

from zoo.errors import UserError


class Slice(NamedTuple):
    """kubernetes: the label of its nodes. cloud: the prefix of its accelerator type. runtime: the
    software of its machines."""

    kubernetes: str
    cloud: str
    runtime: str


SLICES = {
    "v5e": Slice("tpu-v5-lite-podslice", "v5litepod", "v2-alpha-tpuv5-lite"),
    "v6e": Slice("tpu-v6e-slice", "v6e", "v2-alpha-tpuv6e"),
}
# Of either kind: those up to 8 chips are on one host, and of the others a host has 4.
_TOPOLOGIES = {
    **{1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8"},
    **{64: "8x8", 128: "8x16", 256: "16x16"},
}


def find(kind: str, chips: int) -> tuple[Slice, str, int]:
    """(the kind of slice, the topology of so many chips, on how many hosts they are).

    Raises:
      UserError: there is no slice of so many chips.
    """
    if chips not in _TOPOLOGIES:
        raise UserError(
            f"--chips {chips}: slices of {kind} have {', '.join(map(str, _TOPOLOGIES))} chips."
        )
    return SLICES[kind], _TOPOLOGIES[chips], max(1, chips // 4) if chips > 8 else 1
