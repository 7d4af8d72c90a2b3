"""glibc's allocator, told to keep the memory of freed arrays for the next step.

A step on CPU allocates its arrays anew. By default glibc returns large ones to the system when they
are freed, and the next step pays for every page again. Kept, they cost nothing: a step of
`ptb_softmax` takes four fifths of the time. XLA allocates in threads of its own, whose arenas glibc
would unmap whenever they are empty: all threads share one arena. The process holds the most that it
has needed until it ends.
"""

import ctypes
import os

# Parameters of mallopt, of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


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
    settings = (_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1)
    return all(mallopt(*setting) for setting in settings)
