# The verbs of the house. Each makes its own virtual environment if there is none.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check

.PHONY: help demo test check format parameters bench-quick bench-speed bench-faults bench-paper pictures lock audit clean

help:
	@echo "make demo    fit the digits, print the table, draw the map, write a report (demo/)"
	@echo "make test    run the tests"
	@echo "make check   lint, types, imports"
	@echo "make format  let ruff format and mend"
	@echo "make parameters  write docstrings and fields of all methods from the specification"
	@echo "make lock    write requirements.lock anew, after constraints.txt has changed"
	@echo "make audit   ask the advisory service about all dependencies (needs the network)"
	@echo "make bench-quick  walk through the bench: few rows, few epochs (two minutes)"
	@echo "make bench-speed  time against the least that the hardware allows (20 minutes)"
	@echo "make bench-faults  make faults for real, and count which are survived (15 minutes)"
	@echo "make bench-paper  every row of the paper's tables, one seed, on the test parts (hours)"

# All but torch, of which each platform has a build of its own, is checked against requirements.lock.
$(READY): pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) -c constraints.txt $(shell grep '^torch==' constraints.txt)
	$(INSTALL) --no-deps --no-build-isolation -e .
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
	$(RUN) hopefold.bench run --plan quick

bench-speed: $(READY)
	$(RUN) hopefold.bench ruler
	$(VENV)/bin/python benchmarks/fill_tables.py

bench-faults: $(READY)
	$(RUN) hopefold.bench faults
	$(VENV)/bin/python benchmarks/fill_tables.py

bench-paper: $(READY)
	$(RUN) hopefold.bench run --plan core --final
	$(VENV)/bin/python benchmarks/fill_tables.py
	$(RUN) hopefold.bench tables

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
