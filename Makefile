# `make demo` and `make test` set up what they need in .venv and run. Nothing else has to be installed first
# but Python 3.11 or later and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
REFERENCE := .venv-reference
RAY := .venv-ray
SERVERS := .venv-servers
SUPPLY := .venv-supply
# requirements.lock holds for these; elsewhere the newest packages that pyproject.toml allows are installed.
LOCKED := $(shell $(PYTHON) -c 'import platform, sys; print("yes" if (sys.platform, platform.machine()) == ("linux", "x86_64") and sys.version_info[:2] in ((3, 11), (3, 12)) else "no")')

.PHONY: demo package test coverage test-crash test-kernels test-slow test-properties test-reference test-ray test-servers test-order fuzz bench docs lock audit clean

# MODEL=NAME, a folder or a hub id lets that model answer, and downloads it where it must: MODEL=clip-vit-b-32.
demo: $(VENV)/.demo
	$(BIN)/wordreel demo $(if $(MODEL),--model $(MODEL) --yes)

test: $(VENV)/.dev
	$(BIN)/wordreel weights fetch
	$(BIN)/wordreel weights fetch clip-vocabulary minilm
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	OMP_NUM_THREADS=1 WORDREEL_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

# The share of lines and branches that the tests of `make test` reach, its total last; TESTS=FOLDER runs some of them.
coverage: $(VENV)/.dev
	$(BIN)/wordreel weights fetch
	$(BIN)/wordreel weights fetch clip-vocabulary minilm
	rm -rf build/coverage
	OMP_NUM_THREADS=1 WORDREEL_THREADS=1 $(BIN)/python -m coverage run -m pytest -n auto --maxprocesses 4 --dist loadfile $(TESTS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --precision 1

# The tests that compare numbers, with the matrix products of four kinds of processor.
KERNELS ?= Prescott Haswell Zen SkylakeX
NUMERIC := tests/banks tests/embed tests/hubness tests/index tests/models tests/search tests/lab/evaluate tests/test_one_answer.py
test-kernels: $(VENV)/.dev
	$(BIN)/wordreel weights fetch
	for kernel in $(KERNELS); do echo "$$kernel"; OPENBLAS_CORETYPE=$$kernel OMP_NUM_THREADS=1 WORDREEL_THREADS=1 \
	  $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(NUMERIC) || exit 1; done

# Minutes instead of seconds; WORDREEL_TEST_VIDEOS=FOLDER adds the checks that want real videos.
test-slow: $(VENV)/.dev
	$(BIN)/wordreel weights fetch
	$(BIN)/python -m pytest -m slow

# Random commands on a library by two processes, with restarts and kills, for MINUTES; writes results/properties.
test-properties: $(VENV)/.dev
	WORDREEL_PROPERTY_MINUTES=$(or $(MINUTES),15) WORDREEL_PROPERTY_RESULTS=results/properties \
		$(BIN)/python -m pytest -m slow tests/properties

# Towers, tokenizers and transforms against the packages they come from, in an environment of its own.
test-reference: $(REFERENCE)/.ready
	$(REFERENCE)/bin/python -m pytest -m slow tests/reference

# A real Ray cluster on this machine, with workers and nodes killed, in an environment of its own.
# WORDREEL_TEST_VIDEOS=FOLDER adds real videos.
test-ray: $(RAY)/.ready
	$(RAY)/bin/wordreel weights fetch
	$(RAY)/bin/python -m pytest -m slow tests/workers tests/catalogue/test_track_objects.py tests/cli/test_train_faults.py

# A real PostgreSQL and a real Milvus on this machine, killed and restarted, in an environment of its own.
test-servers: $(SERVERS)/.ready
	$(SERVERS)/bin/python -m pytest -m slow tests/servers

# 500 queries of LIBRARY on every surface: nothing shown of a hit contradicts its place. NAME names the table.
NAME ?= order
test-order: $(VENV)/.dev
	$(BIN)/python -m tests.order $(LIBRARY) --out results/order/$(NAME).json

# Changed inputs at everything that reads what others wrote, for SECONDS in all; the table goes to results/fuzz.
SECONDS ?= 1200
fuzz: $(VENV)/.dev
	nice -n 10 $(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# Every operation of a library, stopped at each of its writes, renames and flushes; an hour on two cores.
test-crash: $(SERVERS)/.ready
	OMP_NUM_THREADS=1 $(SERVERS)/bin/python -m tests.crash --jobs 2 --out results/crash

# The documentation, at build/site/index.html.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The wheel and the sdist, in build/package; the wheel is installed without extras in an empty environment, adds
# pictures and searches them.
package: $(VENV)/.dev
	rm -rf build/package
	$(BIN)/hatchling build --directory build/package
	$(PYTHON) -m venv build/package/empty
	build/package/empty/bin/python -m pip install --quiet build/package/*.whl
	build/package/empty/bin/python -I tools/try_package.py

# Lock anew what `make test` installs, after pyproject.toml changed or to update. Needs the package index.
lock: $(SUPPLY)/.ready
	$(SUPPLY)/bin/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-annotate --no-header \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --unsafe-package torch \
	  --extra demo --extra dev --extra docs --extra serve --extra train \
	  --output-file requirements.lock pyproject.toml
	sed -i -e '/^# /,$$d' requirements.lock

# Known vulnerabilities of the locked packages. Needs the network: the package index's list of advisories. Where
# it cannot be had, this says so and fails.
audit: $(SUPPLY)/.ready
	$(SUPPLY)/bin/python tools/audit.py $(SUPPLY)/bin/pip-audit requirements.lock

bench: $(VENV)/.dev
	$(BIN)/wordreel weights fetch
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/experts.py
	$(BIN)/python benchmarks/appearance.py
	$(BIN)/python benchmarks/hubness.py
	$(BIN)/python benchmarks/hubness_embeddings.py
	$(BIN)/python benchmarks/folded.py
	$(BIN)/python benchmarks/metrics.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("wordreel needs Python 3.11 or later; set PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[demo,serve]'
	touch $@

# Packages by version and hash; then torch, whose builds for each accelerator are other files.
$(VENV)/.dev: pyproject.toml requirements.lock torch.lock | $(VENV)/bin/python
ifeq ($(LOCKED),yes)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --constraint torch.lock --editable '.[demo,dev,docs,serve,train]'
else
	$(BIN)/python -m pip install --quiet --constraint torch.lock --editable '.[demo,dev,docs,serve,train]'
endif
	touch $@

$(SUPPLY)/.ready: | $(VENV)/bin/python
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/python -m pip install --quiet pip-tools pip-audit
	touch $@

$(REFERENCE)/.ready: pyproject.toml torch.lock $(wildcard tests/reference/requirements*.txt)
	$(PYTHON) -m venv $(REFERENCE)
	$(REFERENCE)/bin/python -m pip install --quiet --constraint torch.lock --editable '.[dev,train]' --requirement tests/reference/requirements.txt
	$(REFERENCE)/bin/python -m pip install --quiet --no-deps --requirement tests/reference/requirements-no-deps.txt
	touch $@

# aiobotocore, which s3fs needs, takes few versions of botocore; named with boto3, pip finds the one that moto takes too
# instead of trying every s3fs.
$(RAY)/.ready: pyproject.toml torch.lock
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --constraint torch.lock --editable '.[dev,ray,s3,train]' 'moto[server]>=5' 'aiobotocore[boto3]>=3'
	touch $@

$(SERVERS)/.ready: pyproject.toml tests/servers/requirements.txt
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip install --quiet --editable '.[dev,milvus,postgresql,serve]' --requirement tests/servers/requirements.txt
	touch $@

clean:
	rm -rf $(VENV) $(REFERENCE) $(RAY) $(SERVERS) $(SUPPLY) .demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
