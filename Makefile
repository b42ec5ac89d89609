# make app    install once and start the dashboard         make test   install everything once, lint, run the tests
# make bench  run the benchmarks                           make slow   run the tests that take long
# make lock   write the lock files                         make fuzz   read damaged run folders and files
# make demo-tables   write data/demo/tables.md
# make tree   write the file tree of docs/architecture.md
# make help   this list

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help app test slow fuzz lowest lint lock demo-tables tree browser bench
.DEFAULT_GOAL := help

help:
	@echo "make app      install what the dashboard needs (once) and serve it at http://localhost:8501"
	@echo "make test     install everything (once), the browser too, then lint and run the tests"
	@echo "make slow     run the tests that take long: trainings killed and resumed, several hosts, axe and phones on every page"
	@echo "make fuzz     read 500 damaged run folders, and 2,000 damages of every kind of file; make test reads a few"
	@echo "make lowest   run the tests of runs, results and figures on the lowest versions that pyproject.toml allows"
	@echo "make lint     ruff on every file, mypy on the packages"
	@echo "make lock     write requirements*.lock anew, after a change of requirements*.txt"
	@echo "make demo-tables  write data/demo/tables.md from the runs and results there"
	@echo "make tree     write the file tree of docs/architecture.md from the first sentence of each file"
	@echo "make browser  find or install the Chromium that the browser tests open"
	@echo "make bench    run the benchmarks, one file per number that we claim"

app: $(VENV)/app.installed
	$(BIN)/streamlit run app/main.py

pytest := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test: lint browser
	$(pytest) -m "not slow"

slow: lint browser
	$(pytest) -m slow

fuzz: $(VENV)/dev.installed
	EMBRYO_FUZZ=500 $(BIN)/python -m pytest -q -n 2 tests/pretrain/test_fuzz.py tests/fuzz

# The lowest versions that pyproject.toml allows; torch, of which no lower version was tried, is that of the other tests.
lowest: $(VENV)/dev.installed
	$(BIN)/uv venv --quiet --clear --system-site-packages --python $(BIN)/python $(VENV)/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --no-emit-package torch pyproject.toml \
		| $(BIN)/uv pip install --quiet --no-deps --python $(VENV)/lowest/bin/python -r -
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > $$(echo $(VENV)/lowest/lib/python3*/site-packages)/rest.pth
	$(VENV)/lowest/bin/python -m pytest -q -m "not slow" tests/embryo_core/runs tests/embryo_core/results tests/embryo_core/figures

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/mypy

lock: $(VENV)/dev.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/lock.py

demo-tables: $(VENV)/dev.installed
	$(BIN)/python -m tools.demo_tables

tree:
	$(PYTHON) -m tools.tree

# `make bench-query` runs one of them. Evaluation is measured on RUN with TREEBANK and LAMA, edge probing with PROBING, by
# default the demo and the sample; with real data: make bench-evaluation TREEBANK=... LAMA=...
RUN ?= $(notdir $(firstword $(wildcard data/demo/runs/*)))
TREEBANK ?= data/sample/treebank.conllu
LAMA ?= data/sample/lama
PROBING ?= data/sample/probing
arguments_evaluation = $(RUN) --treebank $(TREEBANK) --lama $(LAMA)
arguments_edge_probing = $(RUN) --probing $(PROBING)
PAIRS ?= data/sample/pairs
WORDS ?= data/sample/words.csv
TEXT ?= data/sample/text.txt
arguments_minimal_pairs = $(RUN) --pairs $(PAIRS)
arguments_words_and_geometry = $(RUN) --words $(WORDS) --text $(TEXT) --treebank $(TREEBANK)
arguments_finetuning = $(RUN) --glue $(GLUE)
arguments_attention_scrub = $(addprefix --chromium ,$(shell command -v chromium))
# recipes.py trains for hours and is started by hand (see docs/recipes.md); finetuning.py needs GLUE=FOLDER.
BENCHMARKS := $(filter-out recipes $(if $(GLUE),,finetuning),$(notdir $(basename $(shell grep -l __main__ benchmarks/*.py))))

bench: $(BENCHMARKS:%=bench-%)

bench-%: $(VENV)/dev.installed
	$(BIN)/python -m benchmarks.$* $(arguments_$*)

# === Set-up, once; again when a lock file changes ===

# Every package has a version and hashes in a lock, and comes as a wheel, so no code of a package runs during installation.
# On Linux torch comes from PyTorch's own index without CUDA (200 MB); with TORCH=cuda from PyPI with CUDA (several GB).
TORCH ?= cpu
TORCH_INDEX := https://download.pytorch.org/whl/cpu
locked := $(BIN)/python -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r
torch := $(locked) requirements-torch.lock
ifeq ($(TORCH) $(shell uname -s),cpu Linux)
torch := $(locked) requirements-torch-cpu.lock --extra-index-url $(TORCH_INDEX) 2>/dev/null || { \
	echo "requirements-torch-cpu.lock has no wheel for this machine that could be fetched; installing torch with CUDA."; \
	$(torch); }
endif
define install
	$(locked) $(1)
	$(torch)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
endef

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Embryo needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/app.installed: requirements.lock requirements-torch.lock requirements-torch-cpu.lock pyproject.toml | $(VENV)/bin/python
	$(call install,requirements.lock)
	@touch $@

$(VENV)/dev.installed: requirements-dev.lock requirements-torch.lock requirements-torch-cpu.lock pyproject.toml | $(VENV)/bin/python
	$(call install,requirements-dev.lock)
	@touch $(VENV)/app.installed $@

# Debian's own chromium where apt may install it, playwright's elsewhere; the tests look for them in the same order.
browser: $(VENV)/dev.installed
	@if command -v chromium; then :; \
	elif grep -qs '^ID=debian' /etc/os-release && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then \
		echo "Installing Debian's chromium with apt."; \
		as_root=; [ "$$(id -u)" = 0 ] || as_root=sudo; \
		$$as_root apt-get -qq update && $$as_root apt-get -qq install --yes --no-install-recommends chromium >/dev/null; \
	else \
		echo "Installing playwright's Chromium in the home folder's cache."; \
		$(BIN)/playwright install chromium; \
	fi
