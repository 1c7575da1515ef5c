# make          the program and the library, in build/
# make demo     set up, build, and run the main job on WordNet
# make test     set up, build, and run every test
# make test-cuda   the CUDA backend against the same tests, on a machine with a GPU
# make bench-cuda  timings of the CUDA backend, on a machine with a GPU
# make bench    timings on this machine (benchmark data where VLP_BENCH_DATA points to)
# make bench-accuracy  what the shipped recipes reach; make bench-learn  speed beside PyKEEN
# make lint     format, static analysis, include arrows
# make sanitize every test under ASan+UBSan, the threaded ones under TSan
# make fuzz     every reader for FUZZ_SECONDS (or FUZZ_RUNS)
# make mutants  small wrong changes, each of which a test has to notice
# make man      the man pages, and the completions of shells
# make docs     the documents as a site, in build/site
# make dist     the source archive; make deb  Debian packages; both in build/
# make wheel    the Python package, in build/wheel; make test-python  its tests, in a virtual environment
# make install  PREFIX=/usr/local DESTDIR=

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

BUILD  ?= build
CC     ?= gcc
ifeq ($(origin CC),default)
CC     := gcc
endif
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SHARE   = $(PREFIX)/share
# What installs packages that are missing; `:` where that is done already.
DEPS   ?= scripts/deps
FUZZ_SECONDS ?= 30
VLP_BENCH_DATA ?= ../shared/data
export VLP_BENCH_DATA

VERSION := $(shell sed -n 's/^\#define VLP_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' include/vlp.h | paste -sd.)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# ---- Settings ----
# Packages are looked up only once they are installed: `deps` comes first.
PACKAGES := serd-0 zlib libzstd libxxhash
# OpenBLAS is loaded at run time (src/compute/cpu/blas.c): its header is needed, no link to it.
BLAS_CFLAGS = $(shell pkg-config --cflags openblas)
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Werror
# clang does not vectorize every loop that is marked for it; that is not an error.
WARNINGS += $(if $(findstring clang,$(CC)),-Wno-pass-failed)
OPTIMIZE ?= -O3 -g
# No global fast-math: only what lets loops over expf and sqrtf be vectorized.
CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE -fPIC -fvisibility=hidden -fopenmp -fno-math-errno \
             $(OPTIMIZE) $(WARNINGS) -Iinclude -Isrc -Icommon -I. $(shell pkg-config --cflags $(PACKAGES)) $(BLAS_CFLAGS) \
             $(SANITIZE) $(CFLAGS)
LIBS = $(shell pkg-config --libs $(PACKAGES)) -lm -ldl
# gcc's OpenMP runtime is loaded at run time (src/base/openmp.c), clang's is linked.
LDFLAGS_ALL = $(if $(findstring clang,$(CC)),-fopenmp,-pthread) $(SANITIZE) $(LDFLAGS)

# The CUDA backend is a library of its own, built where nvcc is: machine code for sm_90, PTX for what is
# newer than sm_80. Its cuBLAS is loaded at run time.
NVCC := $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_FLAGS = -std=c++17 -O3 -lineinfo -gencode arch=compute_80,code=compute_80 \
             -gencode arch=compute_90,code=sm_90 -Iinclude -Isrc \
             -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -Werror all-warnings

LIB_SOURCES := $(wildcard src/*/*.c src/*/cpu/*.c)
CUDA_SOURCES := $(wildcard src/compute/cuda/*.cu)
CLI_SOURCES := $(wildcard cli/*.c)
# The HTTP server, and what it shares with the program.
SERVER_SOURCES := $(wildcard server/*.c common/*.c)
SERVER_LIBS = -Wl,--as-needed $(shell pkg-config --libs libmicrohttpd jansson)
TESTS       := $(patsubst tests/%.c,%,$(wildcard tests/test_*.c tests/cuda/test_*.c))
TEST_PARTS  := $(filter-out tests/test_%.c,$(wildcard tests/*.c))
BENCHES     := $(filter-out bench_cuda bench_cuda_paths,$(patsubst bench/%.c,%,$(wildcard bench/bench_*.c)))
FUZZERS     := $(patsubst fuzz/fuzz_%.c,%,$(wildcard fuzz/fuzz_*.c))

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB     := $(BUILD)/libvlp.a
SERVER  := $(BUILD)/libserver.a
SHARED  := $(BUILD)/libvlp.so.$(VERSION)

CUDA    := $(if $(NVCC),$(BUILD)/libvlp_cuda.so)

.PHONY: all cuda deps demo test test-cuda bench bench-cuda lint sanitize sanitize-address sanitize-threads fuzz install clean format
all: $(BUILD)/vlp $(SHARED) $(CUDA)
cuda: $(CUDA)

deps:
	@$(DEPS)

# ---- Building ----
$(BUILD)/obj/%.o: %.c | deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(EXTRA_$(subst /,_,$(basename $<))) -MMD -MP -c $< -o $@
$(BUILD)/obj/tests/%.o: CFLAGS_ALL += -Itests
$(BUILD)/obj/src/compute/registry.o: CFLAGS_ALL += -DVLP_LIBDIR='"$(LIBDIR)"'

$(LIB): $(call objects,$(LIB_SOURCES))
	@rm -f $@
	ar rcs $@ $^

$(SHARED): $(call objects,$(LIB_SOURCES))
	$(CC) -shared -Wl,-soname,libvlp.so.$(SOVERSION) -Wl,--no-undefined $(LDFLAGS_ALL) $^ -o $@ $(LIBS)
	@ln -sf $(@F) $(BUILD)/libvlp.so.$(SOVERSION)
	@ln -sf $(@F) $(BUILD)/libvlp.so

$(SERVER): $(call objects,$(SERVER_SOURCES))
	@rm -f $@
	ar rcs $@ $^
# The page's files are in the object by .incbin, which -MMD does not see.
$(BUILD)/obj/server/page.o: $(wildcard server/page/*) server/openapi.json

$(BUILD)/obj/%.cu.o: %.cu | deps
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/libvlp_cuda.so: $(CUDA_SOURCES:%.cu=$(BUILD)/obj/%.cu.o)
	$(NVCC) -shared -cudart static $^ -o $@ -ldl

$(BUILD)/vlp: $(call objects,$(CLI_SOURCES)) $(SERVER) $(LIB)
	$(CC) $(LDFLAGS_ALL) $^ -o $@ $(LIBS) $(SERVER_LIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call objects,$(TEST_PARTS)) $(SERVER) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) $^ -o $@ $(LIBS) $(SERVER_LIBS) -lcmocka

$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(SERVER) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) $^ -o $@ $(LIBS) $(SERVER_LIBS)

$(BUILD)/fuzz/%: $(BUILD)/obj/fuzz/fuzz_%.o $(SERVER) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer $^ -o $@ $(LIBS) $(SERVER_LIBS)

# ---- Using ----
demo: all
	@scripts/demo $(BUILD)

test: $(BUILD)/vlp $(SHARED) $(TESTS:%=$(BUILD)/tests/%)
	@$(DEPS) --test
	@scripts/test $(BUILD)

.PHONY: test-programs
test-programs: $(TESTS:%=$(BUILD)/tests/%) $(BUILD)/vlp

# What the CUDA backend is held to: the tests of operations, training and evaluation, on the GPU.
CUDA_TESTS := test_ops test_bf16 test_batch test_gradients test_losses test_edges test_aggregator test_aggregator_ops \
              test_sampler test_rank test_select test_paths test_path_steps test_path_runs test_evaluate \
              test_predict test_candidates test_relations test_classify test_steps test_train test_partitions \
              cuda/test_cuda cuda/test_sampler cuda/test_cuda_paths cuda/test_specializations cuda/test_training
test-cuda: all $(CUDA_TESTS:%=$(BUILD)/tests/%)
	@VLP_SANITIZE=1 scripts/device test $(BUILD)

bench-cuda: all $(BUILD)/bench/bench_cuda $(BUILD)/bench/bench_cuda_paths
	@scripts/device bench $(BUILD)

bench: $(BUILD)/vlp $(BENCHES:%=$(BUILD)/bench/%)
	@scripts/bench $(BUILD)

# What the shipped recipes reach, with how long they take; the long one as well.
.PHONY: bench-accuracy bench-learn
bench-accuracy: $(BUILD)/vlp
	@scripts/bench-accuracy $(BUILD) --long

# Training and evaluation beside PyKEEN, which it installs into a virtual environment.
bench-learn: $(BUILD)/vlp $(BUILD)/bench/bench_learn
	@scripts/bench-learn $(BUILD)

lint: | deps
	@scripts/deps --dev
	@scripts/lint

format:
	clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cu')

# gcc's ThreadSanitizer does not know its OpenMP runtime and reports races that are none; clang with
# archer does.
sanitize: sanitize-address sanitize-threads

sanitize-address: | deps
	$(MAKE) BUILD=$(BUILD)/asan OPTIMIZE='-O1 -g -fno-omit-frame-pointer' \
	  SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all' test-programs
	@scripts/test $(BUILD)/asan

THREADED := test_reader test_graph test_distance test_references test_sampler test_metrics test_gradients test_losses test_select test_predict test_mine test_callers test_threads test_tune
sanitize-threads: | deps
	@scripts/deps --dev
	$(MAKE) BUILD=$(BUILD)/tsan CC=clang OPTIMIZE='-O1 -g' SANITIZE='-fsanitize=thread' \
	  $(THREADED:%=$(BUILD)/tsan/tests/%)
	@scripts/test --threads $(BUILD)/tsan $(THREADED)

fuzz: | deps
	@scripts/deps --dev
	$(MAKE) BUILD=$(BUILD)/fuzzing CC=clang OPTIMIZE='-O2 -g' \
	  SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' \
	  $(FUZZERS:%=$(BUILD)/fuzzing/fuzz/%)
	@BUILD=$(BUILD)/fuzzing scripts/fuzz $(if $(FUZZ_RUNS),--runs $(FUZZ_RUNS),--seconds $(FUZZ_SECONDS)) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

.PHONY: mutants print-flags
mutants: test-programs
	@scripts/mutants $(BUILD)

# What scripts/mutants compiles and links with.
print-flags: | deps
	@printf '%s\n' "$(CC)" "$(CFLAGS_ALL) -Itests" "$(LDFLAGS_ALL)" "$(LIBS) $(SERVER_LIBS)"

# Man pages and completions, from the program's --help and docs/man.
.PHONY: man
MANUAL := $(BUILD)/man/vlp.1
man: $(MANUAL)
$(MANUAL): $(BUILD)/vlp $(wildcard scripts/manual/*.py docs/man/*.scd)
	python3 -B scripts/manual/completion.py $(BUILD)/vlp $(BUILD)/completion
	python3 -B scripts/manual/man.py $(BUILD)/vlp docs/man $(BUILD)/man

# The documents as a site.
.PHONY: docs
docs: $(BUILD)/vlp
	@scripts/deps --docs
	@scripts/docs $(BUILD)

# The source archive, and Debian packages made from it.
.PHONY: dist deb
dist:
	@scripts/dist $(BUILD) $(VERSION)
deb: dist
	@scripts/deps --deb
	@scripts/deb $(BUILD) $(VERSION)

install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 755 $(BUILD)/vlp $(DESTDIR)$(PREFIX)/bin/vlp
	install -m 644 include/vlp.h $(DESTDIR)$(PREFIX)/include/vlp.h
	install -m 644 $(LIB) $(DESTDIR)$(LIBDIR)/libvlp.a
	install -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)/$(notdir $(SHARED))
	$(if $(CUDA),install -m 755 $(CUDA) $(DESTDIR)$(LIBDIR)/$(notdir $(CUDA)))
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/libvlp.so.$(SOVERSION)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/libvlp.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' -e 's|@VERSION@|$(VERSION)|' scripts/vlp.pc.in \
	  > $(DESTDIR)$(LIBDIR)/pkgconfig/vlp.pc
	install -d $(DESTDIR)$(SHARE)/man/man1 $(DESTDIR)$(SHARE)/man/man5
	install -m 644 $(BUILD)/man/*.1 $(DESTDIR)$(SHARE)/man/man1
	install -m 644 $(BUILD)/man/*.5 $(DESTDIR)$(SHARE)/man/man5
	install -Dm 644 $(BUILD)/completion/vlp.bash $(DESTDIR)$(SHARE)/bash-completion/completions/vlp
	install -Dm 644 $(BUILD)/completion/_vlp $(DESTDIR)$(SHARE)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)/_vlp
	install -Dm 644 $(BUILD)/completion/vlp.fish $(DESTDIR)$(SHARE)/fish/vendor_completions.d/vlp.fish

# The Python package: libraries that look for others beside themselves first, then, for cuBLAS, in PyPI's packages.
# DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH.
BESIDE := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN'
CUBLAS := $$ORIGIN:$$ORIGIN/../../nvidia/cu13/lib:$$ORIGIN/../../nvidia/cublas/lib
.PHONY: python-libraries wheel test-python
python-libraries: $(BUILD)/python/libvlp.so $(if $(NVCC),$(BUILD)/python/libvlp_cuda.so)

$(BUILD)/python/libvlp.so: $(call objects,$(LIB_SOURCES))
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,libvlp.so.$(SOVERSION) -Wl,--no-undefined -Wl,-S $(BESIDE) $(LDFLAGS_ALL) $^ -o $@ $(LIBS)

$(BUILD)/python/libvlp_cuda.so: $(CUDA_SOURCES:%.cu=$(BUILD)/obj/%.cu.o)
	@mkdir -p $(@D)
	$(NVCC) -shared -cudart static -Xcompiler -static-libstdc++,-static-libgcc -Xlinker -S \
	  -Xlinker --disable-new-dtags -Xlinker -rpath -Xlinker '$(CUBLAS)' $^ -o $@ -ldl

wheel: python-libraries
	@scripts/wheel-test --build-only

# The wheel in a virtual environment of its own.
test-python: $(BUILD)/vlp python-libraries
	@scripts/wheel-test

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
