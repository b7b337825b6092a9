# The only list of commands. `make test` and `make demo` need Python 3.10 or newer, git, make and a package registry.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
OLD_VENV    := .venv-tf215
OLD_PYTHONS := python3.11 python3.10 python3.9 $(PYTHON)
PIP_FLAGS   := --quiet --quiet --disable-pip-version-check

export TF_CPP_MIN_LOG_LEVEL ?= 2

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

.PHONY: test
test: $(VENV)/.stamp system-deps venv-tf215 ## all tests; what fails runs again (docs/decisions/0022-reruns.md)
	@bad=0; for part in "-n 2 --dist worksteal -m 'not alone'" "-m alone"; do \
	  eval "$(PYTEST) --reruns 1 --reruns-delay 5 $$part $(ARGS)"; status=$$?; \
	  [ $$status -eq 0 ] || [ $$status -eq $(NO_TESTS) ] || bad=$$status; done; \
	[ $$bad -eq 0 ] || { \
	  echo "what failed, in a process of its own:"; \
	  $(PYTEST) --last-failed --last-failed-no-failures none $(ARGS); }

.PHONY: test-fast
test-fast: $(VENV)/.stamp ## the tests that start no TensorFlow and no browser
	@$(PYTEST) -m "not tf and not browser and not slow" $(ARGS)

# ---- a wheel ---------------------------------------------------------------------------------------------------

.PHONY: wheel
wheel: $(VENV)/.stamp ## dist/stepscope-VERSION-py3-none-any.whl, to install anywhere
	@rm -rf dist
	@$(BIN)/python -m pip wheel $(PIP_FLAGS) --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: wheel-check
wheel-check: wheel ## installs that wheel in an empty environment and runs it there
	@scripts/try-wheel.sh dist/*.whl $(PYTHON) requirements/constraints.txt

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

# ---- benchmarks ------------------------------------------------------------------------------------------------

.PHONY: bench-diagnosis
bench-diagnosis: $(VENV)/.stamp ## precision, recall and top-1 accuracy on bench/cases; resumable
	@scripts/system-deps.sh --all
	@$(BIN)/python benchmarks/diagnosis.py $(ARGS)

.PHONY: bench-memory-margin
bench-memory-margin: $(VENV)/.stamp ## how near a job may come to its limit of memory; root; resumable
	@$(BIN)/python benchmarks/memory_margin.py $(ARGS)

.PHONY: bench-members
bench-members: $(VENV)/.stamp ## pairing and blame of up to 1,000 members: time, memory, truth
	@$(BIN)/python benchmarks/many_members.py $(ARGS)

.PHONY: bench-strangers
bench-strangers: $(VENV)/.stamp ## the first run of programs by authors who have not seen stepscope; BATCH=batch-1
	@$(BIN)/python benchmarks/judge_strangers.py $(BATCH) $(ARGS)

.PHONY: bench-dlperf
bench-dlperf: $(VENV)/.stamp ## the study's 58 problems: told, silent where they are gone? resumable
	@$(BIN)/python benchmarks/dlperf.py $(ARGS)

.PHONY: bench-other-tools
bench-other-tools: $(VENV)/.stamp ## what other tools say of the study's problems: resumable; ARGS=--tools xprof,xla,deepperf
	@$(BIN)/python benchmarks/other_tools.py $(ARGS)

.PHONY: bench-static-cases
bench-static-cases: $(VENV)/.stamp ## which of bench/cases the static checker tells from the source
	@$(BIN)/python benchmarks/static_cases.py $(ARGS)

.PHONY: bench-rules
bench-rules: $(VENV)/.stamp ## what each rule's fix brings, slow and fixed in turn
	@$(BIN)/python benchmarks/rules.py $(ARGS)

.PHONY: bench-fix-property
bench-fix-property: $(VENV)/.stamp ## does a fix change what a program prints or computes? 2,000 programs, before and after
	@$(BIN)/python benchmarks/fix_property.py --write $(ARGS)

.PHONY: bench-check
bench-check: $(VENV)/.stamp ## speed of the checker, and what stops it; TREES=folders of sources
	@$(BIN)/python benchmarks/check.py $(TREES) --write $(ARGS)

.PHONY: bench-notebooks
bench-notebooks: $(VENV)/.stamp ## the checker over notebooks with large outputs, at doubling sizes
	@$(BIN)/python benchmarks/notebooks.py --write $(ARGS)

.PHONY: bench-known-fixes
bench-known-fixes: $(VENV)/.stamp ## does the checker see what maintainers fixed? CLONES=folder of clones
	@$(BIN)/python benchmarks/known_fixes.py $(CLONES) --write $(ARGS)

.PHONY: bench-deepperf
bench-deepperf: $(VENV)/.stamp ## is everything seen that DeepPerf reports? ARGS=--clones, --reports, --trees
	@$(BIN)/python benchmarks/deepperf.py --write $(ARGS)

.PHONY: bench-distributed
bench-distributed: $(VENV)/.stamp ## five hosts in namespaces: clocks against the truth, causes of slow links; by root; ARGS=--runs 2
	@$(BIN)/python benchmarks/distributed.py $(ARGS)

.PHONY: bench-modes
bench-modes: $(VENV)/.stamp ## every mode of distributed training for real, and is its report right? ARGS="--pythons P,..."
	@$(BIN)/python benchmarks/modes.py $(ARGS)

.PHONY: bench-input-truth
bench-input-truth: $(VENV)/.stamp ## input wait against inputs of known cost
	@$(BIN)/python benchmarks/input_truth.py $(ARGS)

.PHONY: bench-input-bound
bench-input-bound: $(VENV)/.stamp ## what the input could reach, against the best of a grid
	@$(BIN)/python benchmarks/input_bound.py $(ARGS)

.PHONY: bench-rand
bench-rand: $(VENV)/.stamp ## six troubles of one network: found first, and taken away by the trial? resumable (root)
	@$(BIN)/python benchmarks/rand.py $(ARGS)

.PHONY: bench-input-cores
bench-input-cores: $(VENV)/.stamp ## what the input could reach on more cores, against measured rates
	@$(BIN)/python benchmarks/input_cores.py $(ARGS)

.PHONY: bench-graph-table
bench-graph-table: $(VENV)/.stamp ## op time joined to graph nodes, and what knowing them costs
	@$(BIN)/python benchmarks/graph_table.py $(ARGS)

.PHONY: bench-op-limits
bench-op-limits: $(VENV)/.stamp ## is compute said to be as fast as it can be on tuned programs, and only there?
	@$(BIN)/python benchmarks/op_limits.py $(ARGS)

.PHONY: bench-overhead
bench-overhead: $(VENV)/.stamp ## what measuring costs, interleaved with and without
	@$(BIN)/python benchmarks/overhead.py $(ARGS)

.PHONY: bench-anomalies
bench-anomalies: $(VENV)/.stamp ## network, disk and utilisation anomalies made for real, each with a look-alike (root)
	@$(BIN)/python benchmarks/anomalies.py $(ARGS)

.PHONY: bench-whole-stacks
bench-whole-stacks: $(VENV)/.stamp ## which share of native stacks is whole, and what the others lack; --python PROGRAM
	@$(BIN)/python benchmarks/whole_stacks.py $(ARGS)

.PHONY: bench-contention
bench-contention: $(VENV)/.stamp ## CPU contention: the stated share beside what neighbours really cost
	@$(BIN)/python benchmarks/contention.py $(ARGS)

.PHONY: bench-page-faults
bench-page-faults: $(VENV)/.stamp ## steady page faults: share beside perf's, cause, and what the remedy brings
	@$(BIN)/python benchmarks/page_faults.py $(ARGS)

.PHONY: bench-attach-pause
bench-attach-pause: $(VENV)/.stamp ## does attach pause its target? the longest gap in one that stamps the clock
	@$(BIN)/python benchmarks/attach_pause.py $(ARGS)

.PHONY: bench-layout
bench-layout: $(VENV)/.stamp ## does the layout of memory matter to inference? BERT base in ONNX Runtime and PyTorch; an hour
	@$(BIN)/python benchmarks/layout.py $(ARGS)

.PHONY: bench-layout-requests
bench-layout-requests: $(VENV)/.stamp ## the same for requests of mixed shapes, and engines' own layouts; one layer
	@$(BIN)/python benchmarks/layout_requests.py $(ARGS)

.PHONY: bench-faults
bench-faults: $(VENV)/.stamp ## does a fault that meets a measured job harm it, and is it said? resumable (root); ARGS="--torch PYTHON --jax PYTHON --shard 0/2"
	@$(BIN)/python benchmarks/faults.py --write $(ARGS)

.PHONY: bench-kills
bench-kills: $(VENV)/.stamp ## kill -9 of job and sidecar at random moments
	@$(BIN)/python benchmarks/kills.py $(ARGS)

.PHONY: bench-member-kills
bench-member-kills: $(VENV)/.stamp ## deaths of workers, collectors, links, hosts and the gathering server; by root; ARGS=--runs 20
	@$(BIN)/python benchmarks/member_kills.py $(ARGS)

.PHONY: bench-hangs
bench-hangs: $(VENV)/.stamp ## how soon is a hang told while it lasts
	@$(BIN)/python benchmarks/hangs.py $(ARGS)

.PHONY: bench-endings
bench-endings: $(VENV)/.stamp ## do jobs end as without stepscope? pairs of programs that end in many ways; resumable
	@$(BIN)/python benchmarks/endings.py $(ARGS)

.PHONY: bench-call-cost
bench-call-cost: $(VENV)/.stamp ## what a wrapped call costs in a training step
	@$(BIN)/python benchmarks/call_cost.py $(ARGS)

.PHONY: bench-ledger
bench-ledger: $(VENV)/.stamp ## is the time of a job accounted for? the parts of its ledger on programs of many styles
	@$(BIN)/python benchmarks/ledger.py $(ARGS)

.PHONY: bench-general-findings
bench-general-findings: $(VENV)/.stamp ## where do the general findings alone point? cases reported without any specific detector
	@$(BIN)/python benchmarks/general_findings.py $(ARGS)

.PHONY: bench-startup
bench-startup: $(VENV)/.stamp ## what enable costs a process without TensorFlow, interleaved
	@$(BIN)/python benchmarks/startup.py $(ARGS)

.PHONY: bench-ui
bench-ui: $(VENV)/.stamp ## the timeline page on ten million spans: openings, frames, tiles, search, memory
	@$(BIN)/python benchmarks/ui.py $(ARGS)

.PHONY: bench-page-tasks
bench-page-tasks: $(VENV)/.stamp ## five tasks on the page: clicks, seconds, right answers, at three widths
	@$(BIN)/python benchmarks/page_tasks.py $(ARGS)

.PHONY: bench-always-on
bench-always-on: $(VENV)/.stamp ## ten million records of one job: memory, files, disk, CPU time of its sidecar
	@$(BIN)/python benchmarks/always_on.py $(ARGS)

.PHONY: bench-viewers
bench-viewers: $(VENV)/.stamp ## what ten pages that are open cost sidecar and server
	@$(BIN)/python benchmarks/viewers.py $(ARGS)

.PHONY: bench-read-xplane
bench-read-xplane: $(VENV)/.stamp ## our reader of op traces beside xprof; XPROF=Python of an environment that has it
	@$(BIN)/python benchmarks/read_xplane.py --xprof $(XPROF) $(ARGS)

.PHONY: bench-capture
bench-capture: $(VENV)/.stamp ## what an op trace costs a running job, beside TensorFlow's own profiler
	@$(BIN)/python benchmarks/capture.py $(ARGS)

.PHONY: bench-out-of-memory
bench-out-of-memory: $(VENV)/.stamp ## ten programs that die for lack of memory, and that come close; resumable, needs root
	@$(BIN)/python benchmarks/out_of_memory.py $(ARGS)

.PHONY: bench-first-look
bench-first-look: $(VENV)/.stamp ## how often short jobs have their first look, and what it costs; resumable
	@$(BIN)/python benchmarks/first_look.py $(ARGS)

.PHONY: bench-whatif
bench-whatif: $(VENV)/.stamp ## does whatif find what would help? the pairs of bench/cases beside their fixes; resumable, hours
	@$(BIN)/python benchmarks/whatif.py $(ARGS)

.PHONY: bench-until-done
bench-until-done: $(VENV)/.stamp ## how near does --until-done come to the fix made by hand? ten programs of several causes; resumable
	@$(BIN)/python benchmarks/until_done.py $(ARGS)

.PHONY: bench-whatif-values
bench-whatif-values: $(VENV)/.stamp ## does the value trial find waste in values, and claim nothing on clean programs? resumable
	@$(BIN)/python benchmarks/whatif_values.py $(ARGS)

.PHONY: bench-isolation
bench-isolation: $(VENV)/.stamp ## do trials leave nothing behind? 200 of programs that write, a third killed; resumable (root)
	@$(BIN)/python benchmarks/isolation.py $(ARGS)

.PHONY: bench-traced-workers
bench-traced-workers: $(VENV)/.stamp ## do captures end workers with collective operations? ARGS="--jobs N --captures N"
	@$(BIN)/python benchmarks/traced_workers.py $(ARGS)

.PHONY: bench-no-requests
bench-no-requests: $(VENV)/.stamp ## do trials send nothing? 200 of programs that send, beside servers that count; resumable (root)
	@$(BIN)/python benchmarks/no_requests.py $(ARGS)

.PHONY: bench-compare
bench-compare: $(VENV)/.stamp ## does compare --fail-over 5% fail a slow-down of 8 %, and nothing else? resumable
	@$(BIN)/python benchmarks/compare.py $(ARGS)

.PHONY: bench-story
bench-story: $(VENV)/.stamp ## what traced runs cost a cluster with a parameter server, enabled and unmodified
	@$(BIN)/python benchmarks/story.py $(ARGS)

.PHONY: bench-story-hosts
bench-story-hosts: $(VENV)/.stamp ## the whole story of a cluster on hosts of their own, in a browser (by root)
	@$(BIN)/python benchmarks/story_hosts.py $(ARGS)

.PHONY: bench-far-captures
bench-far-captures: $(VENV)/.stamp ## a joint capture, and another host that is cut off, loses packets, is killed (by root)
	@$(BIN)/python benchmarks/far_captures.py $(ARGS)

.PHONY: bench-stacks
bench-stacks: $(VENV)/.stamp ## folding of stack files, noise of profiles; --flamegraph CLONE for the comparison
	@$(BIN)/python benchmarks/stacks.py $(ARGS)

.PHONY: clean
clean: ## everything that can be made again
	@rm -rf $(VENV) $(OLD_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage*
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@find . -name '*.stepscope' -type d -not -path './tests/data/*' -prune -exec rm -rf {} +
