# `make demo` and `make test` set everything up by themselves; PYTHON names the interpreter that makes the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
NOTEBOOKS := $(patsubst notebooks/%.py,out/notebooks/%.ipynb,$(wildcard notebooks/*.py))
COMPARISONS := arrivals bandwidth churn latency loss network_attack partition requests
RUN_NOTEBOOKS := --nbmake --nbmake-timeout=600 --overwrite $(NOTEBOOKS)

.DEFAULT_GOAL := help
.PHONY: help demo test verify notebooks lint format bench figures clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, found " + sys.version.split()[0] + "; pass PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,notebooks]'
	@touch $@

demo: $(VENV)/installed ## a network of 200 users and 200 routers learns; under a minute, no data needed
	$(BIN)/python -m scenarios.quickstart --out out/quickstart

# As many processes as cores, so one thread of linear algebra each: threads that wait for each other would take most time.
test verify: export OPENBLAS_NUM_THREADS ?= 1
test verify: export OMP_NUM_THREADS ?= 1

test: $(VENV)/installed $(NOTEBOOKS) ## the tests and the notebooks
	$(BIN)/python -m pytest -n $(JOBS) tests $(RUN_NOTEBOOKS)

verify: $(VENV)/installed ## the slow checks: statistics, thousands of worlds on both engines, fuzzing
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope -m statistical

notebooks: $(VENV)/installed $(NOTEBOOKS) ## run the notebooks; with their figures they stand in out/notebooks
	$(BIN)/python -m pytest -n $(JOBS) $(RUN_NOTEBOOKS)

out/notebooks/%.ipynb: notebooks/%.py $(VENV)/installed
	@mkdir -p $(@D)
	$(BIN)/jupytext --quiet --to ipynb --output $@ $<

lint: $(VENV)/installed ## style, types and the layer rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed ## put the code into house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed ## speed ratios of this machine
	$(BIN)/python benchmarks/events.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/soft_impute.py

figures: $(VENV)/installed ## the figures of README and docs, with MovieLens 100K as scenarios.movielens finds it
	$(BIN)/python -m scenarios.movielens --folds 1-5 --seed 1 --out out/movielens
	mkdir -p docs/figures
	cp out/movielens/convergence.png docs/figures/movielens.png
	$(BIN)/python -m scenarios.compare --movielens --out out/compare
	cp out/compare/compare.png docs/figures/compare.png
	for name in $(COMPARISONS); do \
		$(BIN)/python -m scenarios.$$name --out out/$$name && cp out/$$name/$$name.png docs/figures/$$name.png || exit 1; \
	done

clean: ## remove what the targets above made
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
