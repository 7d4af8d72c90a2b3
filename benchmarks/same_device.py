"""The device of a comparison: the one that JAX computes on, where PyTorch computes too.

Both libraries multiply float32 matrices of a GPU in TF32 here, or both in float32: by default JAX
takes TF32 everywhere, PyTorch only in cuDNN's layers. Losses are compared in float32.
"""

import contextlib
import os
import sys

import jax

# JAX's name of how float32 matrices are multiplied, and whether PyTorch takes TF32.
PRECISIONS = {"tf32": ("tensorfloat32", True), "float32": ("float32", False)}


def share_device(torch=None) -> str:
    """Puts PyTorch on JAX's device, and returns the device's name for a table's title.

    Exits with a sentence where PyTorch cannot compute there. On a CPU PyTorch gets a thread for
    each core of this process, as JAX does: `taskset -c 0` keeps both to one. On a GPU both
    libraries multiply in TF32.

    Args:
      torch: the module; None if JAX is compared with itself.
    """
    device = jax.devices()[0]
    on_cpu = device.platform == "cpu"
    if torch is None:
        return "on the CPU" if on_cpu else f"on {device.device_kind}"
    if on_cpu:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, on the CPU"
    if device.platform != "gpu" or not torch.cuda.is_available():
        sys.exit(
            f"JAX computes on {device.device_kind}, and PyTorch {torch.__version__} has no GPU to "
            "compute on: install a PyTorch for that device, or set JAX_PLATFORMS=cpu"
        )
    torch.set_default_device("cuda")
    multiply_in("tf32", torch)
    return f"PyTorch {torch.__version__}, products: tf32, on {torch.cuda.get_device_name()}"


def multiply_in(precision: str, torch=None):
    """Sets how both libraries multiply float32 matrices on a GPU: one of `PRECISIONS`."""
    jax_precision, in_tf32 = PRECISIONS[precision]
    jax.config.update("jax_default_matmul_precision", jax_precision)
    if torch is not None:
        torch.backends.cudnn.allow_tf32 = in_tf32
        torch.backends.cuda.matmul.allow_tf32 = in_tf32


@contextlib.contextmanager
def multiplying_in(precision: str, torch=None):
    """Sets how both libraries multiply float32 matrices, and restores it at the end."""
    jax_precision = jax.config.jax_default_matmul_precision
    if torch is not None:
        torch_tf32 = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    multiply_in(precision, torch)
    try:
        yield
    finally:
        jax.config.update("jax_default_matmul_precision", jax_precision)
        if torch is not None:
            torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = torch_tf32
