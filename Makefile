# With nothing but git, make and Python 3.11 or later: `make run`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
PYTHONS ?= python3.11 python3.12 python3.13
YARDSTICK := $(wildcard ../shared/limit/coaf.c)

.PHONY: run test check bench soak docs study stress lowest pythons wheelhouse clean

# Tests run in as many processes as there are cores, so each gets one thread of linear algebra.
test check soak lowest pythons: export OPENBLAS_NUM_THREADS ?= 1

run: $(READY)
	$(BIN)/coaf run

test: $(READY) $(PEERS)
	$(BIN)/pytest -n auto -m "not soak" --cov=coaf --cov-report=

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --doctest-modules src

bench: $(READY) $(PEERS)
	$(BIN)/coaf bench --growth $(if $(YARDSTICK),--limit $(YARDSTICK))

soak: $(READY)
	$(BIN)/pytest -n auto -m soak

docs: $(READY)
	$(BIN)/sphinx-build -W -q docs docs/_build/html

study: $(READY)
	$(BIN)/python benchmarks/study.py

stress: $(READY)
	$(BIN)/python benchmarks/stress.py

# The oldest versions that pyproject.toml claims to work with.
lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --requirement requirements.lowest
	.venv-lowest/bin/python -m pip install --quiet --no-deps --editable .
	.venv-lowest/bin/python -m pytest -n auto -m "not soak"

# Every Python that pyproject.toml names and this machine has; of the others, the types.
pythons: $(READY)
	@for python in $(PYTHONS); do \
	  version=$${python##*python}; venv=.venv-$$version; \
	  $(BIN)/mypy --python-version $$version || failed="$$failed $$version (types)"; \
	  if ! $$python -c '' 2>/dev/null; then absent="$$absent $$version"; continue; fi; \
	  $$python -m venv $$venv && \
	  $$venv/bin/python -m pip install --quiet --requirement requirements.lock && \
	  $$venv/bin/python -m pip install --quiet --no-deps --editable . && \
	  $$venv/bin/python -m pytest -n auto -m "not soak" && passed="$$passed $$version" || \
	  failed="$$failed $$version"; \
	done; \
	echo "passed:$${passed:- none}; failed:$${failed:- none}; not on this machine:$${absent:- none}"; \
	test -z "$$failed"

# All it takes to install without internet; the second line installs it so, and decides.
wheelhouse: $(READY)
	rm -rf wheelhouse
	$(BIN)/python tools/wheelhouse.py wheelhouse
	COAF_WHEELHOUSE=$(CURDIR)/wheelhouse $(BIN)/pytest -m soak tests/test_wheelhouse.py

# Everything at the versions of the lock file.
$(READY): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit("coaf needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

# The peer library has no wheels and needs a C compiler; where there is none, its tests say so.
$(PEERS): $(READY)
	-command -v cc >/dev/null && $(BIN)/python -m pip install --quiet --constraint requirements.lock contextualbandits==0.3.30
	touch $@

clean:
	rm -rf $(VENV) .venv-* out wheelhouse docs/_build .coverage*
