"""Zoo's hot paths on a GPU beside their opponents: see `benchmarks.on_gpu.__main__`."""
