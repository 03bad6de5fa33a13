# The front door. On a fresh Debian 12, `make demo` and `make test` install what is missing, build, and run.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: help demo demo-serve test test-ecosystem build build-test bench install bundle format tidy docs setup setup-test sanitize fuzz soak web clean

help:
	@echo "make demo     set up, build, profile the embedded model, show the report"
	@echo "make demo-serve  the same with the model as a server, under a load of requests"
	@echo "make test     set up, build, run all tests"
	@echo "make test-ecosystem  PyTorch, transformers, numpy and JAX on the CPU under record, servers under load (360 MB of packages, 1.4 GB on disk, once)"
	@echo "make build    leave build/bin/llmprof"
	@echo "make bench    the figures of perf/, measured on this machine"
	@echo "make fuzz     every fuzz target for FUZZ_SECONDS (600); the corpus is kept in fuzz-corpus/"
	@echo "make soak     the long series: 100 M events, SOAK_SECONDS (3600) of a busy loop, faults, stress, fuzzing"
	@echo "make install  PREFIX=$(PREFIX)"
	@echo "make bundle   dist/llmprof-*.tar.xz: unpack anywhere and run"
	@echo "make web      renew web/dist, the page application as it is built into the program"
	@echo "make format   clang-format over our sources     make tidy  clang-tidy over them"
	@echo "make docs     renew the generated parts of docs/"

# One build folder. The demo configures it without tests; the first `make test` adds them and keeps what is compiled.
PRODUCT = llmprof llmprof-workload llmprof_inject llmprof_blas
configured = grep -qs '^$(1):BOOL=ON' build/CMakeCache.txt || cmake --preset release -D$(1)=ON >build/configure.log || { cat build/configure.log; exit 1; }

setup:
	@tools/setup.sh

setup-test:
	@tools/setup.sh --test

build: setup
	@mkdir -p build
	@[ -f build/build.ninja ] || cmake --preset release >build/configure.log || { cat build/configure.log; exit 1; }
	@tools/build.py build $(JOBS) $(PRODUCT)

build-test: setup-test
	@mkdir -p build
	@$(call configured,LLMPROF_TESTS)
	@tools/build.py build $(JOBS)

demo: build
	@build/bin/llmprof demo

demo-serve: build
	@build/bin/llmprof demo --serve

test: build-test
	@cd build && $(CTEST)
	@tools/sanitize.sh $(JOBS)

test-ecosystem: build
	@python3 tests/ecosystem/run.py --build build

sanitize: setup-test
	@tools/sanitize.sh $(JOBS)

fuzz: setup-test
	@tools/fuzz.sh

soak: build-test
	@$(call configured,LLMPROF_PERF)
	@tools/build.py build $(JOBS)
	@tests/soak/run.sh

bench: setup
	@mkdir -p build
	@$(call configured,LLMPROF_PERF)
	@tools/build.py build $(JOBS)
	@perf/run.sh

web: setup-test
	@tools/build_web.sh web/dist

install: build
	@cmake --install build --prefix $(PREFIX)

# With kernels for every chip; the bundle is for machines that are not this one.
bundle: setup
	@cmake --preset release -B build/bundle -DLLMPROF_CUDA_TARGETS="75;80;90" >/dev/null
	@tools/build.py build/bundle $(JOBS) $(PRODUCT)
	@tools/bundle.sh build/bundle

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

tidy: setup-test
	@cmake --preset release -B build/tidy -DLLMPROF_UNITY=0 >/dev/null  # tidy looks at one file
	@git ls-files 'libs/*.cpp' 'apps/*.cpp' | grep -v _test.cpp | xargs -P $(JOBS) -n 1 clang-tidy -p build/tidy --quiet

docs: build
	@tools/build.py build $(JOBS) llmprof-docs
	@build/bin/llmprof-docs .

clean:
	@rm -rf build dist
