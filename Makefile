# What is run by hand and by the checks of every change.

SECONDS_EACH ?= 60
CARGO ?= cargo
PYTHON ?= python3
# The program that bench-everyday, bench-names, bench-lookalikes and bench-ambiguous measure; built first.
BINARY ?= target/release/canonym

.PHONY: check test fmt clippy docs ui bench bench-peers bench-everyday bench-names bench-lookalikes bench-ambiguous bench-resume bench-soak bench-scale bench-dense fuzz attack deny package wheel python spark clients bench-python dist image

# Everything that has to pass before a commit.
check: fmt clippy test docs

test:
	$(CARGO) test --workspace

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# Every crate as a registry takes it, of at most 10 MB; not built again.
package:
	rm -f target/package/*.crate
	$(CARGO) package --workspace --no-verify --allow-dirty --offline
	for crate in target/package/*.crate; do \
		size=$$(wc -c < "$$crate"); echo "$$size bytes: $$crate"; \
		if [ "$$size" -gt 10000000 ]; then echo "error: $$crate is over 10,000,000 bytes, the limit of a registry" >&2; exit 1; fi; \
	done

# The web application: types, tests, the build that is embedded, and tests in a browser.
ui:
	ui/scripts/check.sh

# One Python wheel with library, default model, starter and program, in target/wheels. PROFILE=dev builds on what `make test` built.
PROFILE ?= release
PYTHON_TOOLS ?= target/python-tools
wheel:
	bindings/python/scripts/wheel.sh $(PYTHON) $(PYTHON_TOOLS) $(PROFILE)

# What is released, in target/release-files: an archive with a program that needs no library of the system on Linux, the wheel, and
# checksums. PROFILE=dev packs what `make test` built, which needs them, to try the packing.
dist: wheel
	packaging/dist.sh $(PROFILE)

# The server as an image from scratch; CONTAINERS is podman or docker, with BuildKit. Podman reads .containerignore, Docker the other file.
CONTAINERS ?= podman
image:
	cmp .containerignore packaging/Containerfile.dockerignore
	$(CONTAINERS) build -f packaging/Containerfile -t canonym .

# Installs the wheel in a new virtual environment and runs the tests and doctests of the package.
python: wheel
	bindings/python/scripts/check.sh $(PYTHON)

# Installs the wheel with PySpark, Ray and Dask and tests linking on a cluster of this machine; needs Java 17. With
# SPARK_TESTS=tests/test_spark.py only PySpark is tested.
spark: wheel
	bindings/python/scripts/spark.sh $(PYTHON) $(SPARK_TESTS)

# Tries the services of a server with the clients that users have (Model Context Protocol, FHIR, INCEpTION, Gilda), and reads outputs with
# their libraries: pandas, polars, DuckDB, sssom, fhir.resources and others.
clients:
	$(CARGO) build -p canonym-cli
	benches/clients/check.sh $(PYTHON) target/debug/canonym

# The package of `make python` beside the program of this checkout on DOCUMENTS, JSONL with abstracts, and KB or else the starter.
bench-python:
	$(CARGO) build --release -p canonym-cli
	target/python-check/bin/python benches/bench_python.py --binary $(BINARY) --documents $(DOCUMENTS) $(if $(KB),--kb $(KB))

# Figures for docs/results.md; real corpora and terminologies are read from CANONYM_DATA, else ../shared/data.
bench:
	$(PYTHON) benches/results.py

# Installs other linkers into runs/peers and measures them beside ours, on the same names and abstracts.
bench-peers:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/bench_peers.py

# Everyday text, marked by hand: notes, questions of lay people, news, abstracts.
bench-everyday:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/everyday/bench.py --binary $(BINARY) --report experiments/reports/everyday.json

# Names of thirteen terminologies and of the starter, in sentences and alone; ten minutes on two cores.
bench-names:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/names.py --binary $(BINARY) --synonyms --report experiments/reports/names.json

# Names that the terminology lacks beside ones that it has, and misspellings.
bench-lookalikes:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/lookalikes.py --binary $(BINARY) --report experiments/reports/lookalikes.json

# Batch runs, `kb build` and `index build` killed at random moments and repeated; some ten minutes, needs no data.
bench-resume:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/kill_resume.py $(BINARY) --kills 200 --report experiments/reports/kill-resume.json

# Links in a loop for MINUTES, and in a server, and reports memory over time; needs no data.
MINUTES ?= 30
bench-soak:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/soak.py $(BINARY) --minutes $(MINUTES) --report experiments/reports/soak.json

# Short forms and words of several senses, each in a text that decides.
bench-ambiguous:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/ambiguous.py --binary $(BINARY) --report experiments/reports/ambiguous.json

# All open terminologies together, one of the size of UMLS grown from them, and peers if PYTHON has `benches/scale/peers.txt`; takes an hour,
# 10 GB of disk and 8 GB of memory.
bench-scale:
	$(CARGO) build --release -p canonym-cli -p canonym-core -p canonym-neural --bin canonym --example gram_speed --example index_speed
	$(PYTHON) benches/scale/bench.py --binary $(BINARY) --what tables rates index --report experiments/reports/scale.json
	$(PYTHON) benches/scale/peers.py --binary $(BINARY) --report experiments/reports/scale-peers.json

# The index of names beside faiss and usearch on the same vectors, PYTHON with `pip install -r benches/scale/dense.txt`. The second run is
# that of another encoder.
bench-dense:
	$(CARGO) build --release -p canonym-cli -p canonym-neural --bin canonym --example index_speed --example bert_index
	$(PYTHON) benches/scale/dense.py --binary $(BINARY) --report experiments/reports/dense.json
	$(PYTHON) benches/scale/dense.py --binary $(BINARY) --bert $(CANONYM_MODELS)/all-MiniLM-L6-v2 --report experiments/reports/dense-minilm.json
	$(PYTHON) benches/scale/end_to_end.py --binary $(BINARY) --report experiments/reports/dense-end-to-end.json
	$(PYTHON) benches/scale/cells.py --report experiments/reports/dense-cells.json
	$(PYTHON) benches/scale/plot.py experiments/reports/dense.json docs/images/dense-recall.svg

# Mutated input for every reader and text function; faults go to fuzz/findings. Memory is bounded to 8 GiB.
fuzz:
	$(CARGO) build --profile fuzz -p canonym-fuzz
	ulimit -v 8388608 && target/fuzz/canonym-fuzz --seconds $(SECONDS_EACH)

# Attacks servers of our own on this machine: kills, floods, slow clients, damage. Some minutes; loopback alone.
attack:
	$(CARGO) build --release -p canonym-cli
	$(PYTHON) benches/attack.py --binary $(BINARY)

# Licences and banned crates; `cargo install cargo-deny --locked` takes about four minutes on two cores.
deny:
	$(CARGO) deny --all-features check licenses bans sources
