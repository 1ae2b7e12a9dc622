# demo: answer a prompt plainly and with speculation. test, lint: what CI runs. Everything lives in .venv and build/.

PYTHON ?= python3
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 600
SANITIZE_SECONDS ?= 60
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
BUILD_REQUIREMENTS := "scikit-build-core>=0.11,<1" "nanobind>=2.4,<3" "cmake>=3.20" ninja
NATIVE := $(shell find native -name "*.[ch]pp")
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find src native -type f -not -name '*.pyc')

# All classes but long_context, whose prompts take most of a minute each.
BENCH_ARGS := $(foreach class,code_editing code_writing structured_configuration summarising question_answering \
  translation reasoning writing,--task-class $(class)) --num-prompts 40 --max-tokens 64 --concurrency 1,4 --duration 125

SANITIZED := build/sanitize
SANITIZE_address := address,undefined
SANITIZE_thread := thread
# Tiny models reach every kernel; the default model takes minutes there.
NATIVE_TESTS := tests/runtime tests/models/test_damaged.py tests/acceptance/test_match.py \
  tests/acceptance/test_native_sampler.py \
  --ignore=tests/runtime/test_native_golden.py --ignore=tests/runtime/test_real_models.py \
  --deselect=tests/runtime/test_row_invariance.py::test_contract_on_the_default_model
# A forked child keeps the parent's threads in the sanitizer's books, which then end it for a new thread with an old id.
THREAD_TESTS := tests/runtime/test_threads.py tests/runtime/test_sampler_threads.py \
  --deselect=tests/runtime/test_threads.py::test_a_forked_child_with_threads_of_its_own

.PHONY: help demo test test-slow test-models test-native test-emulated fuzz soak sanitize sanitize-threads lint format bench bench-engines docs clean check-system
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(BIN)/.installed ## build, fetch the default model, show what speculation does
	@$(BIN)/paceline demo

test: $(BIN)/.installed $(BIN)/.test ## all tests but the slow ones
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(BIN)/.installed $(BIN)/.test ## the tests that take minutes
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

test-models: $(BIN)/.installed $(BIN)/.test ## fetch real models of other architectures (0.7 GB) and test with them
	$(BIN)/python tools/fetch_test_models.py
	$(BIN)/python -m pytest tests/runtime/test_real_models.py $(PYTEST_ARGS)

test-native: $(BIN)/.build ## compare the kernels of every instruction set that this processor has, bit for bit
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/compare_paths.py native

test-emulated: $(BIN)/.build ## the same of processors that this one is not, emulated; says which programs it needs
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/compare_paths.py emulated

fuzz: $(BIN)/.installed $(BIN)/.fuzz ## damaged models and hostile templates, FUZZ_SECONDS=600 of them; findings in build/fuzz
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

soak: $(BIN)/.installed ## SOAK_SECONDS=600 of random traffic on the default model: leaks, stalls, gaps, wrong answers
	$(BIN)/python tools/soak.py --seconds $(SOAK_SECONDS)

sanitize: $(SANITIZED)/address/.installed ## the native tests, and SANITIZE_SECONDS=60 of damaged models, under address and undefined-behaviour sanitizers
	$(BIN)/python tools/sanitize.py address $(SANITIZED)/address/site -m pytest $(NATIVE_TESTS) $(PYTEST_ARGS)
	$(BIN)/python tools/sanitize.py address $(SANITIZED)/address/site tests/fuzz/run.py gguf --seconds $(SANITIZE_SECONDS)

sanitize-threads: $(SANITIZED)/thread/.installed ## the tests of threads under the thread sanitizer
	$(BIN)/python tools/sanitize.py thread $(SANITIZED)/thread/site -m pytest $(THREAD_TESTS) $(PYTEST_ARGS)

lint: $(BIN)/.lint $(BIN)/.installed ## formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

format: $(BIN)/.lint ## reformat the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(NATIVE)

bench: $(BIN)/.installed ## what speculation is worth here, in some minutes, into benchmarks/results and benchmarks/README.md
	mkdir -p benchmarks/results/speculation
	$(BIN)/paceline bench $(BENCH_ARGS) --json benchmarks/results/speculation/smollm2.json
	$(BIN)/python tools/generate_docs.py

bench-engines: $(BIN)/.installed ## forwards; COMPARE_ARGS="--engine llama.cpp=PYTHON" compares with other engines
	$(BIN)/paceline profile
	$(BIN)/python benchmarks/compare.py $(COMPARE_ARGS)

docs: $(BIN)/.installed ## rewrite the generated parts of docs/
	$(BIN)/python tools/generate_docs.py

clean: ## remove everything that was built
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis

check-system:
	@command -v "$(PYTHON)" >/dev/null || { echo 'There is no "$(PYTHON)" here: make PYTHON=/path/to/python3.11'; exit 1; }
	@"$(PYTHON)" tools/check_system.py

$(BIN)/.venv: | check-system
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(BIN)/.build: $(BIN)/.venv Makefile
	$(PIP) install $(BUILD_REQUIREMENTS)
	@touch $@

$(BIN)/.installed: $(BIN)/.build $(SOURCES)
	@echo "Building and installing paceline: a minute or two without a word ..."
	$(PIP) install --no-build-isolation .
	@touch $@

$(BIN)/.test: $(BIN)/.installed pyproject.toml
	$(PIP) install --no-build-isolation ".[test]"
	@touch $@

$(BIN)/.fuzz: $(BIN)/.installed pyproject.toml
	$(PIP) install --no-build-isolation ".[test,fuzz]"
	@touch $@

$(BIN)/.lint: $(BIN)/.installed pyproject.toml
	$(PIP) install --no-build-isolation ".[lint]"
	@touch $@

$(SANITIZED)/%/.installed: $(BIN)/.fuzz $(SOURCES)
	@echo "Building paceline for the $* sanitizer: some minutes without a word ..."
	rm -rf $(@D)/site
	$(PIP) install --no-build-isolation --no-deps --target $(@D)/site -C build-dir=$(@D)/build \
	  -C cmake.build-type=RelWithDebInfo -C install.strip=false -C cmake.define.PACELINE_SANITIZE=$(SANITIZE_$*) .
	@touch $@
