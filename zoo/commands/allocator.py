"""glibc's allocator, told to keep the memory of freed arrays for the next step.

A step on CPU allocates its arrays anew. By default glibc returns large ones to the system when they
are freed, and the next step pays for every page again. Kept, they cost nothing: a step of
`ptb_softmax` takes four fifths of the time. The process holds the most that it has needed until it
ends.
"""

import ctypes
import os

# Parameters of mallopt, of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_memory() -> bool:
    """Tells glibc to keep freed memory; returns whether it did.

    It does nothing with another C library or allocator, or where the environment has settings of
    glibc's own (MALLOC_TRIM_THRESHOLD_ and so on).
    """
    chosen = [name for name in os.environ if name.startswith("MALLOC_") or name == "LD_PRELOAD"]
    try:
        if chosen or not os.confstr("CS_GNU_LIBC_VERSION"):
            return False
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, ValueError):  # no glibc, no such function
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, -1))
