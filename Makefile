# The verbs of the project. Meson and ninja do the building, scripts/ the rest.

PREFIX ?= /usr/local
BUILD  := build

# The text of CMD goes to the script as it was written: no `$` of it is expanded by make.
unexport CMD
export NACRE_DEMO := $(value CMD)

.DEFAULT_GOAL := all
.PHONY: all run test check test-full test-vm bench lint format install uninstall deps help clean

all: ## build the program, the keeper and the library into build/
	@scripts/build.sh $(BUILD)

run: ## install what is missing, build, and run a command under nacre (CMD='...')
	@scripts/deps.sh build
	@scripts/build.sh $(BUILD)
	@scripts/demo.sh $(BUILD)

test: ## install what tests need, and run them (eight minutes)
	@scripts/deps.sh build test
	@scripts/peers.sh install || echo "they could not be installed, so their tests will fail"
	@scripts/test.sh

check: ## unit tests and the rules of the source tree (a minute); single tests: see CONTRIBUTING.md
	@scripts/deps.sh build test
	@scripts/build.sh $(BUILD) -Dtests=true
	@meson test -C $(BUILD) --no-rebuild --suite unit --suite checks --print-errorlogs

test-full: ## the whole matrix, or what MATRIX matches: users, tiers, sanitizers, denied system calls
	@scripts/deps.sh build test full
	@scripts/test-full.sh

test-vm: ## boot distributions, and try the promises in each (VM='debian13 ubuntu24.04' chooses)
	@scripts/deps.sh vm
	@tests/vm/run.sh $(VM)

bench: ## build and run the benchmarks
	@scripts/deps.sh build bench
	@scripts/build.sh $(BUILD) -Dbench=true
	@scripts/bench.sh $(BUILD)

lint: ## formatting, static analysis and the rules of the source tree
	@scripts/deps.sh build test
	@scripts/lint.sh

format: ## rewrite the C sources the way .clang-format says
	@scripts/list-c.sh | xargs clang-format -i

install: ## install under PREFIX (default /usr/local), below DESTDIR if given
	@scripts/build.sh $(BUILD) -Dprefix=$(PREFIX)
	@meson install -C $(BUILD) --no-rebuild --quiet
	@echo "nacre is installed under $(DESTDIR)$(PREFIX)"

uninstall: ## remove what `make install` with the same PREFIX and DESTDIR has put there
	@scripts/build.sh $(BUILD) -Dprefix=$(PREFIX) --target build.ninja
	@scripts/uninstall.sh $(BUILD)

deps: ## install the Debian packages that building and testing need
	@scripts/deps.sh build test

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

clean: ## remove everything that was built
	@rm -rf build build-asan build-tsan
