# The commands of Headtime. Each does the set-up that it needs, on Debian 12 with a Rust toolchain.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin

# A linker for Rust and a C++ compiler for libFuzzer (g++ brings gcc and libc6-dev), git for the
# list of tracked files, xz for a lent address map.
PACKAGES := g++ git xz-utils

# What boots a kernel and runs in it: an emulator, a shell, loads, file systems, and names of devices.
GUEST_PACKAGES := qemu-system-x86 busybox-static fio e2fsprogs udev
GUEST := $(CURDIR)/target/guest

# Suites that others wrote and what they need: NBD clients, loads, file systems over FUSE and loop,
# a browser for the status page, Python for its wrapper.
SUITE_PACKAGES := procps systemd mount fio qemu-utils libnbd-bin e2fsprogs xfsprogs btrfs-progs fuse3 chromium fonts-dejavu-core python3

# What the Python package is built and tested with: `venv` of Debian's Python.
PYTHON_PACKAGES := python3 python3-venv

# What counts instructions.
COUNT_PACKAGES := valgrind

# What the service is measured with and beside.
BENCH_PACKAGES := fio mount fuse3 nbdkit qemu-system-common

# Built once and kept beside what is built from here; without optimisation, which would take longer
# than it saves.
TOOLS := $(CURDIR)/target/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
FUZZ := $(TOOLS)/bin/cargo-fuzz
FUZZ_VERSION := 0.13.2
MUTANTS := $(TOOLS)/bin/cargo-mutants
MUTANTS_VERSION := 27.1.0
MDBOOK := $(TOOLS)/bin/mdbook
MDBOOK_VERSION := 0.5.4
CARGO_DEB := $(TOOLS)/bin/cargo-deb
CARGO_DEB_VERSION := 3.8.0
FSX := $(TOOLS)/bin/fsx
FSX_VERSION := 0.3.2

# How much `make suites-long` does: kills under a load, operations of fsx on each file system.
KILLS ?= 2000
FSX_OPERATIONS ?= 50000

# Where `make install` puts the command and what belongs to it. DESTDIR is put before it.
PREFIX ?= /usr/local

# systemd's units.
UNITS := headtime@.service headtime@.socket headtime-scrub@.service headtime-scrub@.timer

# Documentation beside the command: examples, dashboards, alerts.
DOC = $(DESTDIR)$(PREFIX)/share/doc/headtime

# How the command is compiled: `make deb` takes the profile `dist`, which is smaller and takes longer.
PROFILE := release

# What `make mutants` is told: `cargo xtask mutants --help`.
MUTANTS_WORDS ?=

# What `make package` generates for both.
PACKAGE := $(CURDIR)/target/package

# How long `make fuzz` looks at each target.
SECONDS_PER_TARGET ?= 60

.PHONY: help setup tools guest-setup suites-setup demo install uninstall package deb try-deb test guest suites suites-long suites-of xfstests tidy \
	counts python bench bench-peers bench-service screenshots book sanitized fuzz mutants

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what building needs: Debian packages, the toolchain's format and lint tools
	@.ci/packages $(PACKAGES)
	@command -v cargo >/dev/null || { echo "no cargo: please install Rust, see https://rustup.rs" >&2; exit 2; }
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
	  || rustup component add rustfmt clippy

tools: setup $(DENY) ## Build the licence checker into target/tools

$(DENY):
	cargo install --debug cargo-deny --version $(DENY_VERSION) --locked --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

demo: setup ## The service live for half a minute, OLTP with and without a scan: report, page, plot in out/
	mkdir -p out
	cargo run --profile demo --locked --package headtime -- demo --seconds 30

package: setup
	cargo build --profile $(PROFILE) --locked --package headtime
	rm -rf "$(PACKAGE)"
	mkdir -p "$(PACKAGE)/man"
	target/$(PROFILE)/headtime man-pages "$(PACKAGE)/man"
	gzip -9 -n "$(PACKAGE)"/man/*.1
	target/$(PROFILE)/headtime completions bash > "$(PACKAGE)/headtime.bash"
	target/$(PROFILE)/headtime completions zsh > "$(PACKAGE)/_headtime"
	target/$(PROFILE)/headtime completions fish > "$(PACKAGE)/headtime.fish"
	target/$(PROFILE)/headtime serve --print-default > "$(PACKAGE)/emulated.toml"

install: package ## The command, manual pages, completions, units, examples and dashboards under PREFIX (/usr/local)
	install -D -m 755 target/$(PROFILE)/headtime "$(DESTDIR)$(PREFIX)/bin/headtime"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/man1" "$(PACKAGE)"/man/*
	install -D -m 644 "$(PACKAGE)/headtime.bash" "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/headtime"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/zsh/site-functions" "$(PACKAGE)/_headtime"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d" "$(PACKAGE)/headtime.fish"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/lib/systemd/system" $(UNITS:%=packaging/%)
	sed -i 's|/usr/bin/headtime|$(PREFIX)/bin/headtime|' "$(DESTDIR)$(PREFIX)"/lib/systemd/system/headtime*@.service
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/lib/udev/rules.d" packaging/61-headtime.rules
	install -D -m 644 -t "$(DOC)" packaging/doors.conf.example README.md CHANGELOG.md
	install -D -m 644 -t "$(DOC)/examples" examples/sample.csv packaging/examples/*.toml "$(PACKAGE)/emulated.toml"
	install -D -m 644 -t "$(DOC)/dashboard" dashboard/*.json
	install -D -m 644 -t "$(DOC)/dashboard/prometheus" dashboard/prometheus/*.yml

uninstall: ## Remove what `make install` installed
	rm -f "$(DESTDIR)$(PREFIX)/bin/headtime" "$(DESTDIR)$(PREFIX)"/share/man/man1/headtime.1.gz \
	  "$(DESTDIR)$(PREFIX)"/share/man/man1/headtime-*.1.gz \
	  "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/headtime" \
	  "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_headtime" \
	  "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/headtime.fish" \
	  $(UNITS:%="$(DESTDIR)$(PREFIX)/lib/systemd/system/%") \
	  "$(DESTDIR)$(PREFIX)/lib/udev/rules.d/61-headtime.rules"
	rm -rf "$(DOC)"

deb: PROFILE = dist
deb: package $(CARGO_DEB) ## A Debian package in target/debian
	PATH="$(TOOLS)/bin:$$PATH" cargo deb --package headtime --profile $(PROFILE) --no-build --strip --locked

try-deb: deb ## That package in a fresh Debian 12 without a compiler: install, demo, purge (root, 2 minutes)
	@.ci/packages debootstrap
	.ci/try-deb target/debian/headtime_*.deb

$(CARGO_DEB):
	cargo install --debug cargo-deb --version $(CARGO_DEB_VERSION) --locked --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

test: tools guest-setup suites-setup counts-setup python-setup ## Everything that CI runs
	PATH="$(TOOLS)/bin:$$PATH" cargo xtask check

guest-setup: setup
	@.ci/packages $(GUEST_PACKAGES)
	@.ci/guest-kernel $(GUEST)

guest: guest-setup ## Only the tests in a kernel of their own: ublk, SCSI (3 s a boot)
	cargo test --locked --package guest --package server --test guest --lib
	cargo test --locked --package headtime --test guest

suites-setup: setup $(FSX)
	@.ci/packages $(SUITE_PACKAGES)
	@[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true

$(FSX):
	cargo install --debug fsx --version $(FSX_VERSION) --locked --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

suites: suites-setup ## Only other people's NBD suites against the binary, and hostile clients (15 s)
	PATH="$(TOOLS)/bin:$$PATH" cargo test --locked --package headtime --test suites

suites-long: suites-setup ## The same with more of fsx, and more kills under a load (half an hour)
	PATH="$(TOOLS)/bin:$$PATH" FSX=$(FSX_OPERATIONS) \
	  cargo test --locked --package headtime --test suites
	KILLS=$(KILLS) cargo test --locked --package headtime --test service killed::

suites-of: setup ## Programs of libnbd's and nbd's tests, that were built elsewhere (PROGRAMS=dir)
	@.ci/packages socat
	cargo build --locked --package headtime
	.ci/suites-of "$(PROGRAMS)" target/debug/headtime

xfstests: suites-setup ## xfstests' generic tests over FUSE and loop (XFSTESTS=dir, built; GROUP)
	cargo build --locked --package headtime
	.ci/xfstests "$(XFSTESTS)" target/debug/headtime "$(or $(GROUP),generic/quick)"

tidy: setup ## Only the rules of STYLE that a program can check
	cargo xtask tidy

python-setup: setup
	@.ci/packages $(PYTHON_PACKAGES)

python: python-setup ## Only the Python package: wheel, fresh virtual environments, tests (3 minutes the first time)
	cargo build --locked --package headtime
	.ci/python

counts-setup: setup
	@.ci/packages $(COUNT_PACKAGES)

counts: counts-setup ## Only the instructions of the hot paths, beside golden numbers (15 s once the tests are built)
	cargo xtask counts

bench: setup ## How many requests a CPU second simulates
	cargo run --release --locked --package headtime -- bench simulate

# The other program of cache replays, and the traces on which both run.
PEER := libcachesim==0.3.5
LENT := $(or $(HEADTIME_SHARED),../shared)/traces
PEER_TRACES ?= $(wildcard $(LENT)/msr_web_3.csv.zst $(LENT)/diskmon_sys1.csv.zst $(LENT)/ms_dtrs_5min.csv.zst)

bench-peers: python-setup ## Replays of caches beside libCacheSim, which it installs (PEER_TRACES; 10 minutes)
	cargo build --release --locked --package headtime
	python3 -m venv target/peers
	target/peers/bin/pip install --quiet --disable-pip-version-check "$(PEER)"
	target/release/headtime bench peers --libcachesim target/peers/bin/python $(PEER_TRACES:%=--trace "%")

bench-service: setup ## The service beside nbdkit and QEMU, our order beside the kernel's (12 minutes, root)
	@.ci/packages $(BENCH_PACKAGES)
	cargo build --release --locked --package headtime
	target/release/headtime bench serve --rounds 9
	target/release/headtime bench schedulers --seconds 15 --rounds 3

screenshots: suites-setup ## The pictures of the status page and of `headtime top` in the book
	mkdir -p docs/how-to/images
	HEADTIME_SCREENSHOTS=$(CURDIR)/docs/how-to/images \
	  cargo test --locked --package server --test control pictures_of_the_page
	HEADTIME_BLESS=1 cargo test --locked --package headtime --bin headtime pictures_of_the_terminal

book: setup $(MDBOOK) ## Render the book in docs/ into target/book
	$(MDBOOK) build docs

$(MDBOOK):
	cargo install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

# Each run of the swarm leaks its clock, on purpose.
sanitized: setup ## Unsafe code of server and clients under AddressSanitizer, with the swarm (10 minutes)
	@export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/sanitized; \
	sanitized() { cargo test --locked --target $$(rustc -vV | sed -n 's/^host: //p') -p "$$@"; }; \
	sanitized headtime-client --lib && sanitized server --lib --test event_loop && \
	  ASAN_OPTIONS=detect_leaks=0 sanitized server --test swarm

fuzz: setup $(FUZZ) ## Look for inputs that break a parser, SECONDS_PER_TARGET each
	@rustup toolchain list | grep -q ^nightly || rustup toolchain install nightly --profile minimal
	@export PATH="$(TOOLS)/bin:$$PATH"; \
	for target in $$(cargo +nightly fuzz list); do \
	  case $$target in \
	    profile) seeds=drives; longest=32768 ;; \
	    workload) seeds=workloads; longest=4096 ;; \
	    experiment) seeds=experiments; longest=4096 ;; \
	    *) seeds=fuzz/seeds/$$target; longest=4096 ;; \
	  esac; \
	  mkdir -p fuzz/corpus/$$target; \
	  cargo +nightly fuzz run "$$target" fuzz/corpus/$$target $$seeds -- \
	    -max_total_time=$(SECONDS_PER_TARGET) -max_len=$$longest -timeout=10 -rss_limit_mb=1024; \
	done

$(FUZZ):
	cargo install cargo-fuzz --version $(FUZZ_VERSION) --locked --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

mutants: setup $(MUTANTS) ## Which share of small changes the tests notice, by samples (hours; MUTANTS_WORDS=--help)
	PATH="$(TOOLS)/bin:$$PATH" cargo xtask mutants $(MUTANTS_WORDS)

$(MUTANTS):
	cargo install --debug cargo-mutants --version $(MUTANTS_VERSION) --locked --root $(TOOLS) \
	  --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build
