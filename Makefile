# The verbs of the house. Each makes its own virtual environment if there is none.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check

.PHONY: help demo test check format parameters bench-quick bench-speed bench-paper faults pictures lock audit clean

help:
	@echo "make demo    fit the digits, print the table, draw the map, write a report (demo/)"
	@echo "make test    run the tests"
	@echo "make check   lint, types, imports"
	@echo "make format  let ruff format and mend"
	@echo "make parameters  write docstrings and fields of all methods from the specification"
	@echo "make lock    write requirements.lock anew, after constraints.txt has changed"
	@echo "make audit   ask the advisory service about all dependencies (needs the network)"
	@echo "make bench-quick  run every benchmark of the paper with few rows and epochs (two minutes)"
	@echo "make bench-speed  run the roofline benchmark: measured time against the hardware's limit (20 minutes)"
	@echo "make bench-paper  run every row of the paper's tables, one seed, on the test parts (hours)"
	@echo "make faults       run the stress tests: real faults, and how many are survived (15 minutes)"

# All but torch, of which each platform has a build of its own, is checked against requirements.lock.
$(READY): pyproject.toml benchmarks/pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) -c constraints.txt $(shell grep '^torch==' constraints.txt)
	$(INSTALL) --no-deps --no-build-isolation -e . -e benchmarks
	$(RUN) pip check
	@touch $@

demo: $(READY)
	$(VENV)/bin/hopefold demo --force

test: $(READY)
	$(RUN) pytest

check: $(READY)
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports

format: $(READY)
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

parameters: $(READY)
	$(VENV)/bin/python tools/write_parameters.py
	$(RUN) ruff check --quiet --fix src/hopefold/estimators src/hopefold/baselines
	$(RUN) ruff format --quiet src/hopefold/estimators src/hopefold/baselines

bench-quick: $(READY)
	$(RUN) hopefold_bench run --plan quick

bench-speed: $(READY)
	$(RUN) hopefold_bench roofline
	$(VENV)/bin/python benchmarks/fill_tables.py

faults: $(READY)
	PYTHONPATH=$(CURDIR)/tests $(RUN) faults run
	$(VENV)/bin/python benchmarks/fill_tables.py

bench-paper: $(READY)
	$(RUN) hopefold_bench run --plan core --final
	$(VENV)/bin/python benchmarks/fill_tables.py
	$(RUN) hopefold_bench tables

lock:
	$(PYTHON) .ci/lock.py

audit:
	$(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

clean:
	rm -rf $(VENV) .audit demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

pictures: demo
	cp demo/map.png demo/exemplars.png docs/images/
	$(VENV)/bin/python benchmarks/report_pictures.py
	$(VENV)/bin/python benchmarks/depth_pictures.py
