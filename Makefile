# The only list of commands. `make test` and `make demo` need Python 3.10 or newer, git, make and a package registry.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
OLD_VENV    := .venv-tf215
MCP_VENV    := .venv-mcp
SITE_VENV   := .venv-site
AUDIT_VENV  := .venv-audit
OLD_PYTHONS := python3.11 python3.10 python3.9 $(PYTHON)
PIP_FLAGS   := --quiet --quiet --disable-pip-version-check

export TF_CPP_MIN_LOG_LEVEL ?= 2
# Without written bytecode each process that the tests start would compile stepscope for itself (1 to 2 s of CPU time).
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-18s %s\n", $$1, $$2}'

# ---- environments ----------------------------------------------------------------------------------------------

.PHONY: venv
venv: $(VENV)/.stamp ## .venv: stepscope (editable), TensorFlow, tests and checks
	@:

$(VENV)/.stamp: pyproject.toml requirements/constraints.txt
	@echo "making $(VENV) (about a minute, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -c requirements/constraints.txt --editable . --group dev
	@touch $@

# The oldest TensorFlow that is tested: a job's Python only, without stepscope. Absent where it cannot be had.
.PHONY: venv-tf215
venv-tf215: ## .venv-tf215: TensorFlow 2.15 and Keras 2, as some jobs have them
	@test -e $(OLD_VENV)/.stamp -a $(OLD_VENV)/.stamp -nt requirements/tf215.txt || \
	  scripts/old-venv.sh $(OLD_VENV) requirements/tf215.txt $(OLD_PYTHONS)

# The SDK of `stepscope mcp` with what it brings, over .venv: only its own tests need it.
.PHONY: venv-mcp
venv-mcp: $(MCP_VENV)/.stamp ## .venv-mcp: .venv, and the SDK that `stepscope mcp` needs
	@:

$(MCP_VENV)/.stamp: $(VENV)/.stamp requirements/mcp.txt
	@test -x $(MCP_VENV)/bin/python || $(BIN)/python -m venv $(MCP_VENV)
	@$(MCP_VENV)/bin/python -m pip install $(PIP_FLAGS) -c requirements/constraints.txt -r requirements/mcp.txt
	@$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	  > $$($(MCP_VENV)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/stepscope-venv.pth
	@touch $@

.PHONY: system-deps
system-deps: ## chromium and iproute2, by apt where this may
	@scripts/system-deps.sh

.PHONY: lock
lock: ## new requirements/constraints.txt from the newest allowed versions
	@scripts/lock.sh $(PYTHON)

# ---- demo and tests --------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.stamp ## traces a training with a real bottleneck and says what it is
	@cd examples && ../$(BIN)/stepscope run demo_train.py

.PHONY: pictures
pictures: $(VENV)/.stamp system-deps ## docs/images again, from a run of the example
	@$(BIN)/python scripts/pictures.py $(ARGS)

NO_TESTS = 5
PYTEST = $(BIN)/python -m pytest --quiet -raR
ALONE = $(if $(ARGS),,$(shell grep -rl 'pytest.mark.alone' tests --include='test_*.py'))

.PHONY: test
test: $(VENV)/.stamp system-deps venv-tf215 ## all tests; what fails runs again (docs/decisions/0022-reruns.md)
	@bad=0; for part in "-n 2 --dist worksteal -m 'not alone'" "-m alone $(ALONE)"; do \
	  eval "$(PYTEST) --reruns 1 --reruns-delay 5 $$part $(ARGS)"; status=$$?; \
	  [ $$status -eq 0 ] || [ $$status -eq $(NO_TESTS) ] || bad=$$status; done; \
	[ $$bad -eq 0 ] || { \
	  echo "what failed, in a process of its own:"; \
	  $(PYTEST) --last-failed --last-failed-no-failures none $(ARGS); }

.PHONY: test-fast
test-fast: $(VENV)/.stamp ## the tests that start no TensorFlow and no browser
	@$(PYTEST) -m "not tf and not browser and not slow" $(ARGS)

.PHONY: test-frontend
test-frontend: ## the unit tests of the page's modules (needs Node and npm)
	@cd frontend && { test -d node_modules/@types/node || npm ci --silent --no-audit --no-fund; }
	@cd frontend && npm test --silent

.PHONY: test-mcp
test-mcp: $(MCP_VENV)/.stamp ## the tests of `stepscope mcp`, with clients of the SDK
	@$(MCP_VENV)/bin/python -m pytest --quiet -raR tests/mcp $(ARGS)

# One package: make test-check, test-readers, ... TensorFlow is started in some tests of agent, check, diagnosis, machine, report and web alone.
test-%: $(VENV)/.stamp
	@test -d tests/$* || { echo "no tests/$*: one of $(notdir $(wildcard tests/*))"; exit 2; }
	@$(PYTEST) tests/$* $(ARGS)

# ---- a wheel ---------------------------------------------------------------------------------------------------

.PHONY: changelog
changelog: ## the changes of changes/ into CHANGELOG.md: make changelog VERSION=X.Y.Z
	@scripts/changelog.sh $(VERSION)

.PHONY: wheel
wheel: $(VENV)/.stamp ## dist/stepscope-VERSION-py3-none-any.whl, to install anywhere
	@rm -rf dist
	@$(BIN)/python -m pip wheel $(PIP_FLAGS) --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: wheel-check
wheel-check: wheel ## installs that wheel in an empty environment and runs it there
	@scripts/try-wheel.sh dist/*.whl $(PYTHON) requirements/constraints.txt

.PHONY: wheel-same
wheel-same: $(VENV)/.stamp ## two builds of wheel and sdist, in two folders at two times, are the same byte for byte
	@scripts/same-wheel.sh $(BIN)/python

$(AUDIT_VENV)/.stamp: requirements/audit.txt
	@test -x $(AUDIT_VENV)/bin/python || $(PYTHON) -m venv $(AUDIT_VENV)
	@$(AUDIT_VENV)/bin/python -m pip install $(PIP_FLAGS) -r $<
	@touch $@

.PHONY: audit
audit: $(VENV)/.stamp $(AUDIT_VENV)/.stamp ## known defects of what is installed (pip-audit, npm audit), bandit, the list of parts
	@$(BIN)/python scripts/audit.py

.PHONY: release
release: $(VENV)/.stamp ## checked wheel and sdist of a new version: make release VERSION=X.Y.Z; publishes nothing
	@$(BIN)/python scripts/release.py $(VERSION)

# ---- static checks ---------------------------------------------------------------------------------------------

.PHONY: check
check: lint types contracts docs-check assets-check ratchet ## every static check

.PHONY: lint
lint: $(VENV)/.stamp ## ruff, all rules
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "make format would change the files above"; exit 1; }

.PHONY: format
format: $(VENV)/.stamp ## ruff's formatter and its safe fixes
	@$(BIN)/ruff check --quiet --fix-only . ; $(BIN)/ruff format --quiet .

.PHONY: types
types: $(VENV)/.stamp ## mypy, strict
	@$(BIN)/mypy --no-error-summary

.PHONY: contracts
contracts: $(VENV)/.stamp ## who may import whom
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }

.PHONY: docs
docs: $(VENV)/.stamp ## writes the generated pages and schemas
	@$(BIN)/python scripts/gen_docs.py
	@test ! -e scripts/gen_schema.py || $(BIN)/python scripts/gen_schema.py

.PHONY: docs-check
docs-check: $(VENV)/.stamp ## generated pages and schemas equal what the code says
	@$(BIN)/python scripts/gen_docs.py --check
	@test ! -e scripts/gen_schema.py || $(BIN)/python scripts/gen_schema.py --check

# A venv for it alone: the theme and what it brings are not stepscope's.
$(SITE_VENV)/.stamp: requirements/site.txt
	@test -x $(SITE_VENV)/bin/python || $(PYTHON) -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install $(PIP_FLAGS) -r requirements/site.txt
	@touch $@

.PHONY: site
site: $(SITE_VENV)/.stamp ## build/site: the documentation as a site, warnings as errors; open build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --quiet --strict --clean

.PHONY: assets
assets: $(VENV)/.stamp ## builds the page from frontend/ (needs Node and npm)
	@$(BIN)/python scripts/gen_frontend.py
	@cd frontend && npm ci --silent --no-audit --no-fund
	@$(BIN)/python scripts/assets.py

.PHONY: assets-check
assets-check: $(VENV)/.stamp ## the built page is what frontend/ says
	@$(BIN)/python scripts/gen_frontend.py --check
	@$(BIN)/python scripts/assets.py --check

.PHONY: ratchet
ratchet: $(VENV)/.stamp ## module length, Any, type: ignore, broad except, noqa: may only fall
	@$(BIN)/python scripts/ratchet.py

.PHONY: coverage
coverage: $(VENV)/.stamp ## lines that the fast tests run, by package; ARGS=--write: docs/benchmarks/coverage.md
	@$(BIN)/python scripts/covered.py $(ARGS)

# ---- benchmarks ------------------------------------------------------------------------------------------------

.PHONY: bench
bench: ## the benchmarks: make bench-NAME, or make NAME in bench/
	@$(MAKE) -C bench help

bench-%:
	@$(MAKE) -C bench $*

.PHONY: clean
clean: ## everything that can be made again
	@rm -rf $(VENV) $(OLD_VENV) $(MCP_VENV) $(SITE_VENV) $(AUDIT_VENV)
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage*
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@find . -name '*.stepscope' -type d -not -path './tests/data/*' -prune -exec rm -rf {} +
