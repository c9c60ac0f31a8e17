# Bare `make` lists the targets.
CARGO ?= cargo
PYTHON ?= python3
# How long and how much is attacked.
MINUTES ?= 60
SEED ?= 3407
EXECUTIONS ?= 6000
KILLS ?= 500
FAULTS ?= 200
export CARGO_TERM_COLOR ?= auto
ifdef CI
# Everything is built once and from nothing: what speeds up the next build, and line numbers of backtraces, cost a quarter more.
export CARGO_INCREMENTAL ?= 0
export CARGO_PROFILE_DEV_DEBUG ?= 0
endif

# Parts that run side by side print one after the other, where make can.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
.PHONY: help test test-page-and-counts test-packages format lint rust unit docs book metrics instructions browser python python-clients spark fuzz fuzz-short chaos chaos-short miri asan deny bench bench-scale bench-peers clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

test: format lint rust ## what CI runs: formatting, lints, tests, docs, other packages, counts, reports in a browser, the Python package, a minute of attacks and one of faults
	@# Side by side: much of what is left waits for one core or for packages to come.
	@$(MAKE) --no-print-directory -j 2 $(SYNC) test-page-and-counts test-packages

test-page-and-counts:
	@for part in docs instructions browser fuzz-short chaos-short; do $(MAKE) --no-print-directory $$part || exit 1; done

test-packages:
	@for part in metrics python; do $(MAKE) --no-print-directory $$part || exit 1; done

format: ## check formatting
	$(CARGO) fmt --all --check

lint: ## clippy, warnings are errors
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

rust: unit ## unit, property, snapshot and documentation tests
	$(CARGO) test --workspace --exclude poul --tests --locked
	$(CARGO) test --workspace --doc --locked

# Unit tests hold the library's code once more, and compute little: it is compiled for them without optimisation, which takes a
# third of the time. (The Python package is named for the features that it asks of dependencies, which are then built once.)
unit: ## unit tests of the library
	CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) test --package poul --package poul-python --tests --locked

docs: ## build the API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --lib --no-deps --locked

book: ## render the pages for users to target/book, by mdBook
	@if command -v mdbook >/dev/null; then mdbook build book && echo "open target/book/index.html"; \
	else echo "mdBook is not installed: cargo install mdbook"; exit 1; fi

metrics: ## compare every named metric with causalml and scikit-uplift, where Python can install them
	$(CARGO) build --workspace --bin metrics_json --bin hot_kernels --locked
	@$(PYTHON) tests/metrics/compare.py --venv target/metrics-venv --binary target/debug/metrics_json; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: comparison with causalml and scikit-uplift (could not be installed here)"; \
	else exit $$status; fi

instructions: ## count the instructions of the hot kernels, which may not grow by more than 10 %
	$(CARGO) build --workspace --bin metrics_json --bin hot_kernels --locked
	@$(PYTHON) tests/instructions/guard.py --binary target/debug/hot_kernels; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: count of instructions (see above)"; \
	else exit $$status; fi

browser: ## open reports in headless Chromium, where there is one or apt-get can install it; pictures in target/browser
	$(CARGO) build --workspace --bin poul --locked
	@mkdir -p target/browser
	@POUL_REPORT_PAGES=$(CURDIR)/target/browser $(CARGO) test --workspace --exclude poul --tests --locked --quiet \
		tests::pages_for_the_browser -- --ignored
	@$(PYTHON) tests/browser/report.py --binary target/debug/poul --pages target/browser --out target/browser; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: reports in a browser (there is no Chromium, and it could not be installed here)"; \
	else exit $$status; fi

python: ## build the Python package, install it and run its tests and types, where Python can install what they need
	$(CARGO) build --workspace --exclude benches --locked
	@$(PYTHON) python/check.py --venv target/python-venv; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: the Python package (its tests' packages could not be installed here)"; \
	else exit $$status; fi

python-clients: ## the Python package as EconML and DoWhy use it, where Python can install them
	@$(PYTHON) python/check.py --venv target/python-clients-venv --clients; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: EconML and DoWhy (could not be installed here)"; \
	else exit $$status; fi

spark: ## the Python package on Spark: a master and two workers on loopback, and Connect, where there is Java and pyspark can be installed
	@$(PYTHON) python/check.py --venv target/spark-venv --spark; \
	status=$$?; \
	if [ $$status -eq 77 ]; then echo "SKIPPED: Spark (Java or its packages are not to be had here)"; \
	else exit $$status; fi

fuzz: ## attack everything that is read, for so long: MINUTES=60, SEED=3407; inputs that fail go to target/fuzz/crashes
	$(CARGO) build --workspace --profile fuzzing --bin fuzz --locked
	target/fuzzing/fuzz --minutes $(MINUTES) --seed $(SEED) --json target/fuzz/summary.json

fuzz-short: ## the same inputs at every run, for about a minute
	$(CARGO) build --workspace --bin fuzz --locked
	target/debug/fuzz --executions $(EXECUTIONS)

chaos: ## kill, stop and starve every long command, and compare the bytes: KILLS=500, FAULTS=200, SEED=3407
	$(CARGO) build --workspace --profile fuzzing --bin poul --locked
	@$(PYTHON) tests/chaos/chaos.py --binary target/fuzzing/poul --kills $(KILLS) --others $(FAULTS) --seed $(SEED) --json target/chaos.json; \
	status=$$?; if [ $$status -eq 77 ]; then echo "SKIPPED: chaos (signals and limits are those of Unix)"; else exit $$status; fi

chaos-short: ## some of it, for about a minute
	$(CARGO) build --workspace --bin poul --locked
	@$(PYTHON) tests/chaos/chaos.py --binary target/debug/poul --kills 20 --others 30; \
	status=$$?; if [ $$status -eq 77 ]; then echo "SKIPPED: chaos (signals and limits are those of Unix)"; else exit $$status; fi

# The toolchain that has them, if any.
NIGHTLY ?= nightly

miri: ## the unsafe modules' tests under Miri, where a nightly toolchain with it is installed
	@if $(CARGO) +$(NIGHTLY) miri --version >/dev/null 2>&1; then \
	MIRIFLAGS="-Zmiri-disable-isolation" $(CARGO) +$(NIGHTLY) miri test -p poul --lib -- dispatch net::kernel stats::; \
	else echo "SKIPPED: Miri (no nightly toolchain with it: rustup toolchain install nightly --component miri,rust-src)"; fi

asan: ## the fuzz targets under AddressSanitizer, where a nightly toolchain is installed
	@if $(CARGO) +$(NIGHTLY) --version >/dev/null 2>&1; then \
	host=$$(rustc +$(NIGHTLY) -vV | sed -n 's/^host: //p') && \
	RUSTFLAGS="-Zsanitizer=address" $(CARGO) +$(NIGHTLY) build --workspace --profile fuzzing --bin fuzz --locked --target $$host --target-dir target/asan && \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 target/asan/$$host/fuzzing/fuzz --no-address-limit --executions $(EXECUTIONS); \
	else echo "SKIPPED: AddressSanitizer (no nightly toolchain: rustup toolchain install nightly)"; fi

deny: ## licences, sources and known faults of what we depend on, where cargo-deny or cargo-audit and their database are to be had
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then echo "SKIPPED: cargo deny (cargo install cargo-deny)"; \
	elif $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny check; \
	else echo "SKIPPED: advisories (their database cannot be fetched)"; $(CARGO) deny check licenses bans sources; fi
	@if ! $(CARGO) audit --version >/dev/null 2>&1; then echo "SKIPPED: cargo audit (cargo install cargo-audit)"; \
	elif $(CARGO) audit --quiet; then :; else status=$$?; \
	if [ -d "$${CARGO_HOME:-$$HOME/.cargo}/advisory-db" ]; then exit $$status; else echo "SKIPPED: cargo audit (its database cannot be fetched)"; fi; fi

bench: ## speed of reading, of the metrics, of training, of scoring and of allocating; quality on simulated worlds
	$(CARGO) run --release --locked -p benches --bin bench_read
	$(CARGO) run --release --locked -p benches --bin bench_metrics
	$(CARGO) run --release --locked -p benches --bin bench_engine
	$(CARGO) run --release --locked -p benches --bin bench_score
	$(CARGO) run --release --locked -p benches --bin bench_latency
	$(CARGO) run --release --locked -p benches --bin bench_policies
	$(CARGO) run --release --locked -p benches --bin bench_allocate
	$(CARGO) run --release --locked -p benches --bin quality

bench-scale: ## how the cost of a fit grows with rows, features, policies, atoms and threads (benches/scale.py --only paper: the paper's problem)
	$(CARGO) build --release --locked --workspace --bin poul
	@$(PYTHON) benches/scale.py --binary target/release/poul

bench-peers: ## our speed and figures beside PyTorch, JAX, EconML and causalml, where Python can install them (an hour; HILLSTROM=FILE adds real data)
	$(CARGO) build --release --locked --workspace --bins
	@for mode in eager compile jax; do $(PYTHON) benches/peers/compare.py --venv target/peers-venv --binary target/release/bench_engine --mode $$mode || test $$? -eq 77; done
	@$(PYTHON) benches/peers/boosted.py --venv target/peers-venv --binary target/release/bench_boosted || test $$? -eq 77
	@$(PYTHON) benches/peers/learners.py --venv target/peers-venv --binary target/release/poul || test $$? -eq 77
	@if [ -n "$(HILLSTROM)" ]; then $(PYTHON) benches/peers/hillstrom.py --venv target/peers-venv --binary target/release/poul --data "$(HILLSTROM)" || test $$? -eq 77; fi
	@$(PYTHON) tests/metrics/bench.py --venv target/metrics-venv

clean: ## remove what was built
	$(CARGO) clean
