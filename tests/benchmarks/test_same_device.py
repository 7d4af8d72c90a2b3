"""Both sides of a benchmark compute on JAX's device, or the benchmark refuses."""

import os
import types

import jax
import pytest

from benchmarks import same_device


class Opponent:
    """The part of PyTorch that `share_device` reads and sets."""

    __version__ = "2.0"

    def __init__(self, gpu):
        self.device, self.threads = "cpu", 5
        self.cuda = types.SimpleNamespace(is_available=lambda: gpu, get_device_name=lambda: "card")
        self.backends = types.SimpleNamespace(
            cudnn=types.SimpleNamespace(allow_tf32=True),
            cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
        )

    def set_default_device(self, device):
        self.device = device

    def set_num_threads(self, threads):
        self.threads = threads

    def get_num_threads(self):
        return self.threads

    @property
    def tf32(self):
        return self.backends.cudnn.allow_tf32, self.backends.cuda.matmul.allow_tf32


@pytest.fixture
def on_gpu(monkeypatch):
    """JAX computes on a GPU, as far as `share_device` asks."""
    device = types.SimpleNamespace(platform="gpu", device_kind="another card")
    monkeypatch.setattr(jax, "devices", lambda: [device])
    before = jax.config.jax_default_matmul_precision
    yield
    jax.config.update("jax_default_matmul_precision", before)


def test_pytorch_stays_on_the_cpu_with_jax():
    """Also where PyTorch has a GPU that JAX does not use."""
    opponent, cores = Opponent(gpu=True), len(os.sched_getaffinity(0))
    assert same_device.share_device(opponent) == f"PyTorch 2.0, {cores} threads, on the CPU"
    assert opponent.device == "cpu"
    assert opponent.tf32 == (True, False)
    assert same_device.share_device() == "on the CPU"


def test_pytorch_follows_jax_to_a_gpu(on_gpu):
    """Both multiply in TF32 there, and in float32 while results are compared."""
    opponent = Opponent(gpu=True)
    assert same_device.share_device(opponent) == "PyTorch 2.0, products: tf32, on card"
    assert opponent.device == "cuda"
    assert opponent.tf32 == (True, True)
    assert jax.config.jax_default_matmul_precision == "tensorfloat32"
    with same_device.multiplying_in("float32", opponent):
        assert opponent.tf32 == (False, False)
        assert jax.config.jax_default_matmul_precision == "float32"
    assert opponent.tf32 == (True, True)
    assert jax.config.jax_default_matmul_precision == "tensorfloat32"
    assert same_device.share_device() == "on another card"


def test_a_pytorch_without_the_gpu_is_refused(on_gpu):
    """The sentence names both sides and the way out."""
    with pytest.raises(SystemExit, match=r"another card.*PyTorch 2\.0 has no GPU.*JAX_PLATFORMS"):
        same_device.share_device(Opponent(gpu=False))
