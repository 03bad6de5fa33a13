# The front door. On a fresh Debian 12, `make demo` and `make test` install what is missing, build, and run.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: help demo test test-ecosystem build bench install bundle format tidy docs setup sanitize fuzz soak clean

help:
	@echo "make demo     set up, build, profile the embedded model, show the report"
	@echo "make test     set up, build, run all tests"
	@echo "make test-ecosystem  PyTorch, transformers, numpy and JAX on the CPU under record (356 MB of packages, 1.4 GB on disk, once)"
	@echo "make build    leave build/bin/llmprof"
	@echo "make bench    the figures of perf/, measured on this machine"
	@echo "make fuzz     every fuzz target for FUZZ_SECONDS (600); the corpus is kept in fuzz-corpus/"
	@echo "make soak     the long series: 100 M events, SOAK_SECONDS (3600) of a busy loop, faults, stress, fuzzing"
	@echo "make install  PREFIX=$(PREFIX)"
	@echo "make bundle   dist/llmprof-*.tar.gz: unpack anywhere and run"
	@echo "make format   clang-format over our sources     make tidy  clang-tidy over them"
	@echo "make docs     renew the generated parts of docs/"

setup:
	@tools/setup.sh

build: setup
	@[ -f build/build.ninja ] || cmake --preset release
	@ninja -C build -j $(JOBS)

demo: build
	@build/bin/llmprof demo

test: build
	@cd build && $(CTEST)
	@tools/sanitize.sh $(JOBS)

test-ecosystem: build
	@python3 tests/ecosystem/run.py --build build

sanitize: setup
	@tools/sanitize.sh $(JOBS)

fuzz: setup
	@tools/fuzz.sh

soak: build
	@tests/soak/run.sh

bench: build
	@perf/run.sh

install: build
	@cmake --install build --prefix $(PREFIX)

bundle: build
	@tools/bundle.sh

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

tidy: build
	@git ls-files 'libs/*.cpp' 'apps/*.cpp' | grep -v _test.cpp | xargs -P $(JOBS) -n 1 clang-tidy -p build --quiet

docs: build
	@build/bin/llmprof-docs .

clean:
	@rm -rf build dist
