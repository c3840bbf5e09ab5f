# Two commands do everything: `make train` and `make test`. They need Python 3.11 or newer and make. For another one
# beside it: `make quick VENV=.venv-3.13 PYTHON=python3.13`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
# Where torch comes without CUDA, which is gigabytes; empty, or where it can't be reached: from PyPI.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: train test quick processes slow gpu page check bench build native npm page-static wheels docs figures release-check clean

train: $(VENV)/train  ## train the quick-start policy, or GAME's, on all cores, measure it, say how to load it
	$(BIN)/python -m training.train --config $(or $(GAME),quickstart) --processes 0

test: $(VENV)/dev  ## the test suite
	$(BIN)/python -m pytest -n 2

quick: $(VENV)/quick  ## the tests of the rules and of what every game promises: two minutes
	$(BIN)/python -m pytest -n 2 tests/games tests/test_contract.py tests/envs/test_aec.py

processes: $(VENV)/dev  ## tests that start processes which compile and train: the documents' commands, shared runs, new games
	$(BIN)/python -m pytest -n 2 -m 'processes and not slow'

slow: $(VENV)/wheels  ## the long tests, with what they print; SHARE=K/5: a fifth of them, MINUTES: and no longer
	$(BIN)/python -m pytest -n 2 -m slow -rP $(SHARE:%=--share %) $(MINUTES:%=--minutes %)

gpu: $(VENV)/dev  ## the tests of a GPU; build/gpu.jsonl has what each reported until then, also if the run is cut off
	mkdir -p build
	$(BIN)/python -u -m pytest -m gpu -n $(or $(WORKERS),auto) -v --report-log build/gpu.jsonl tests/engine/test_gpu.py tests/training

page: $(VENV)/dev  ## whole games clicked through on the server's page, where there is a Chromium
	$(BIN)/python -m pytest -n 2 -m slow tests/frontends/page

check: $(VENV)/dev  ## lint, words, layers of imports, and types
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select PLW1514 card_envs training  # Windows has an encoding of its own
	$(BIN)/ruff format --check .
	$(BIN)/codespell $$(git ls-files)
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 card_envs training

bench: $(VENV)/train  ## speed on this machine
	$(BIN)/python -m card_envs bench

docs: $(VENV)/docs  ## the documentation site in build/docs: warnings are errors, every link is checked
	$(BIN)/python -m sphinx -c docs -q -W --keep-going -d build/doctrees . build/docs
	$(BIN)/python docs/links.py build/docs
	@echo "the site: build/docs/index.html"

build: $(VENV)/train  ## compile GAME or all games ahead of time, for this machine (three minutes on two cores): all starts at once
	$(BIN)/python -m card_envs build $(GAME)

native: $(VENV)/wheels  ## C libraries of GAME or all games, with players (WITH="--opponent NAME": others), in build/api
	$(BIN)/python -m card_envs build $(GAME) --api $(WITH)

npm: $(VENV)/wheels  ## the package for JavaScript: WebAssembly of all games and their players, in js/built
	$(BIN)/python -m card_envs build --api $(WITH) --target wasm32 --folder js/built
	mkdir -p build
	cd js && npm pack --silent --pack-destination ../build

page-static: npm  ## the page that needs no server, in build/page
	$(BIN)/python -m card_envs.build._page js build/page

wheels: $(VENV)/wheels  ## wheels with libraries for each kind of machine, and one without, in dist/
	$(BIN)/python -m tests.wheels

figures: $(VENV)/train  ## the tables of measured figures in the documents, from strength/*.json and docs/speed.json
	$(BIN)/python docs/figures.py

release-check: $(VENV)/dev  ## wheel and sdist, built and tested in clean environments
	$(BIN)/python -m tests.release

clean:
	rm -rf .venv .venv-* build dist card_envs/native js/built

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/train: $(VENV)/bin/python pyproject.toml constraints.txt
	[ -z "$(TORCH_INDEX)" ] || $(BIN)/python -m pip install --quiet --retries 0 --timeout 20 --no-deps --constraint constraints.txt \
		--index-url "$(TORCH_INDEX)" torch || echo "torch comes from PyPI, on Linux with CUDA"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train]'
	touch $@

$(VENV)/dev: $(VENV)/train
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,sb3,serve,open-spiel,onnx,dev]'
	touch $@

# These tests need no torch, which for some Pythons comes with gigabytes of CUDA.
$(VENV)/quick: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/wheels: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,build,dev]'
	touch $@

$(VENV)/docs: $(VENV)/train
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,docs]'
	touch $@
