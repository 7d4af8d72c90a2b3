# Two commands do everything on a fresh machine: make quickstart, make test.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
QUICKSTART := runs/quickstart

.PHONY: quickstart data tables models test test-all test-slow test-realdata torch-test cluster-test accelerator-test soak release-check lint format \
  benchmarks docs notebook clean

# The stamp is newer than these files as soon as everything in them is installed, and zoo itself:
# editable, so that a script in any folder imports this checkout.
$(VENV)/installed: requirements.txt pyproject.toml setup.py
	@echo "installing Zoo and what it needs into $(VENV), about two minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements.txt -e .
	touch $@

# The same for development: tests, types, browsers, notebooks.
$(VENV)/development: tests/requirements.txt $(VENV)/installed
	$(BIN)/python -m pip install --quiet -r tests/requirements.txt
	touch $@

quickstart: $(VENV)/installed
	$(BIN)/python train.py --config micro_softmax $(QUICKSTART)/softmax
	$(BIN)/python train.py --config micro_log_linear $(QUICKSTART)/log_linear
	$(BIN)/python -m zoo compare --micro $(QUICKSTART)/softmax $(QUICKSTART)/log_linear
	@echo "look at $(QUICKSTART)/agreement.png; then: source $(BIN)/activate, and"
	@echo "python -m zoo text FILE (a model of your own text), or python train.py --list (all recipes)"

# The models of models/, from new runs; their texts are in $ZOO_DATA (docs/data.md).
MODELS := runs/models
models: $(VENV)/installed
	$(BIN)/python train.py --config micro_log_linear $(MODELS)/micro
	$(BIN)/python train.py --config shakespeare_char --set training.epochs=10 $(MODELS)/shakespeare
	$(BIN)/python train.py --config captions_softmax $(MODELS)/english
	$(BIN)/python train.py --config french_log_linear $(MODELS)/french
	for name in micro shakespeare english french; do \
	  $(BIN)/python evaluate.py $(MODELS)/$$name && rm -rf models/$$name || exit 1; done
	$(BIN)/python -m zoo evaluate $(MODELS)/french --agreement
	$(BIN)/python -m zoo export $(MODELS)/micro models/micro
	$(BIN)/python -m zoo export $(MODELS)/shakespeare models/shakespeare --licence \
	  "Shakespeare's plays are in the public domain; the file is that of char-rnn (MIT licence)"
	$(BIN)/python -m zoo export $(MODELS)/english models/english --licence \
	  "Multi30k names no licence: its captions, made for Flickr30k, are for non-commercial research and \
	education, and so is this model"
	$(BIN)/python -m zoo export $(MODELS)/french models/french --licence \
	  "UD French 1.4, CC BY-NC-SA 3.0 US (Universal Dependencies): the model is for non-commercial use, \
	with this attribution. Parts of speech and features of words are from UD French Sequoia, LGPL-LR. \
	Later releases of the treebank, UD French GSD, are CC BY-SA 4.0; this model has not seen them"

# Free corpora, into $ZOO_DATA or the working folder: make data, make data NAMES=ud_czech_pdt.
data: $(VENV)/installed
	$(BIN)/python -m zoo data $(or $(NAMES),wikitext-2 tinyshakespeare multi30k ud_french_gsd)

# The site, into site/, of docs/ and the docstrings, which are written as pages into build/pages;
# `python -m http.server -d site` shows it with its search. A dead link, a page without a place in the navigation or an unknown name fails.
$(VENV)/docs: docs/site/requirements.txt $(VENV)/installed
	$(BIN)/python -m pip install --quiet -r docs/site/requirements.txt
	touch $@

docs: $(VENV)/docs
	JAX_PLATFORMS=cpu $(BIN)/python docs/site/pages.py
	NO_MKDOCS_2_WARNING=1 JAX_PLATFORMS=cpu $(BIN)/python -m mkdocs build --strict
	$(BIN)/python docs/site/pages.py --check site

# The tables of docs/results.md whose passports are kept.
tables: $(VENV)/installed
	$(BIN)/python -m records.tables

# A file's tests in one process: they share what is trained and compiled for them.
TESTS := $(BIN)/python -m pytest -n 2 --dist loadfile

test: $(VENV)/development
	$(TESTS)

# All of them: those that take long, and those of corpora where $ZOO_DATA has them.
test-all: $(VENV)/development
	$(TESTS) -m ''

test-slow: $(VENV)/development
	$(TESTS) -m slow

test-realdata: $(VENV)/development
	$(TESTS) -m realdata

# The tests of benchmarks and of models of PyTorch once more, beside PyTorch for CPUs: no test may need it, or need it to be absent. A temporary environment
# has it and the packages of $(VENV).
torch-test: $(VENV)/development
	@torch=$$(mktemp -d) && trap 'rm -rf "$$torch"' EXIT && $(BIN)/python -m venv "$$torch" && \
	if "$$torch/bin/python" -m pip install -q --retries 1 \
	  --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu; then \
	  $(BIN)/python -c "import site; print(site.getsitepackages()[0])" > "$$(echo "$$torch"/lib/python*/site-packages)/zoo.pth"; \
	  "$$torch/bin/python" -m pytest -n 2 --dist loadfile tests/benchmarks tests/heads/test_adaptive.py \
	    tests/interop/test_torch_models_pytorch.py tests/interop/test_joeynmt_pytorch.py; \
	else echo "PyTorch cannot be installed: the tests of benchmarks are not run beside it"; fi

# Steps compiled for TPUs and GPUs by their compilers, which it installs into a temporary folder.
accelerator-test: $(VENV)/development
	@compilers=$$(mktemp -d) && trap 'rm -rf "$$compilers"' EXIT && \
	jax=$$($(BIN)/python -c 'import jax; print(jax.__version__)') && \
	tpu=$$($(BIN)/python -c 'import importlib.metadata as m; print(next(r for r in m.requires("jax") if r.startswith("libtpu")).partition(";")[0])') && \
	if $(BIN)/python -m pip install -q --retries 1 --no-deps --target "$$compilers" $$tpu \
	  jax-cuda12-plugin==$$jax jax-cuda12-pjrt==$$jax nvidia-cuda-nvcc-cu12; then \
	  PYTHONPATH="$$compilers" $(BIN)/python -m pytest -m slow tests/lab/training/test_compile_for.py \
	    tests/heads/test_every_head_collectives.py; \
	else echo "the compilers cannot be installed: nothing is compiled for TPUs and GPUs"; fi

# Runs of `launch slurm` on a SLURM of four virtual nodes, which is made for it and ends with it.
cluster-test: $(VENV)/development
	@for program in slurmctld slurmd sbatch; do \
	  PATH="$$PATH:/usr/sbin" command -v $$program > /dev/null || \
	  { echo "$$program is not installed: install SLURM, on Debian slurm-wlm" >&2; exit 2; }; done
	$(BIN)/python -m pytest -m slow tests/cluster

# Kills trainings a hundred times at random moments: make soak, make soak KILLS=20 SEED=3.
soak: $(VENV)/development
	$(BIN)/python -m tests.soak --kills $(or $(KILLS),100) $(if $(SEED),--seed $(SEED))

# Builds sdist and wheel, checks them, and does what the documents show from the wheel outside the checkout:
# make release-check, or PYTHONS="python3.11 python3.13" for the oldest and the newest jax of each.
release-check: $(VENV)/development
	$(BIN)/python -m tests.release $(PYTHONS)

lint: $(VENV)/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.typing.check_planted

# Executes the notebook again, after its code has been changed.
notebook: $(VENV)/development
	$(BIN)/python -m tests.notebook

format: $(VENV)/development
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A script that fails does not stop the others.
BENCHMARKS := log_linear softmax_losses beam_search cores training_step translation_step \
  "translation_step --attention" pytorch_steps pytorch_beam generation
benchmarks: $(VENV)/installed
	@failed=; for script in $(BENCHMARKS); do \
	  echo "python -m benchmarks.$$script"; \
	  $(BIN)/python -m benchmarks.$$script || failed="$$failed$${failed:+, }$$script"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed: $$failed" >&2; exit 1; fi

clean:
	rm -rf $(QUICKSTART)
