# make             libcdmpp.a, libcdmpp.so and every cdmpp-* command, in build/release
# make quickstart  install what is missing, build, train on the sample, predict, write a report
# make check       unit tests, command tests, fuzz corpora, layer check (installs what it needs)
# make check-long  sanitizers, allocation faults, threads, reports, sets under $CDMPP_DATA
# make results     regenerate docs/results*.md and docs/replay-accuracy.md from the data sets
# make bench       speed and memory figures
# make fuzz        every fuzz target for FUZZ_S seconds each (clang)
# make deps        apt packages
# make install     PREFIX=/usr/local DESTDIR=;  make uninstall
# make help        this text;  V=1 shows commands, MODE=san|tsan|fault|cov other builds, WERROR= warns only
.DEFAULT_GOAL := all
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

MODE ?= release
B ?= build/$(MODE)
ifeq ($(origin CC),default)
CC = gcc
endif
# Where the reference data are (docs/data.md); empty where there are none.
CDMPP_DATA ?= $(wildcard ../shared/data)
DATA = $(abspath $(CDMPP_DATA))
PREFIX ?= /usr/local
DESTDIR ?=
WERROR ?= -Werror
WARN := -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wdouble-promotion -Wcast-qual $(WERROR)
OPT_release := -O3 -g
OPT_san     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan    := -O1 -g -fsanitize=thread
OPT_fault   := -O1 -g -DCD_FAULT
OPT_cov     := -O0 -g --coverage
# Debian names the serial HDF5 after its flavour; other systems just hdf5.
HDF5_PC := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
INC     := $(shell pkg-config --cflags-only-I $(HDF5_PC) 2>/dev/null | sed 's/-I/-isystem /g')
OPENBLAS := $(shell pkg-config --libs openblas 2>/dev/null || echo -lopenblas)
LIBS    := $(shell pkg-config --libs $(HDF5_PC) 2>/dev/null || echo -lhdf5) -lxgboost $(OPENBLAS) -lyaml -llzma -lzstd -lz -lpthread -lm
CFLAGS  := $(WARN) $(OPT_$(MODE)) -ffp-contract=off -fvisibility=hidden -fPIC -I. $(INC) -D_GNU_SOURCE $(EXTRA)
LDFLAGS := $(filter -fsanitize% --coverage,$(OPT_$(MODE)))

# A new .c file needs no edit here: main_<x>.c and its parts main_<x>_<y>.c become cdmpp-<x>,
# the rest the library.
DIRS := base features dataset learner predictor profiler
SRC  := $(wildcard $(DIRS:=/*.c))
MAIN := $(filter %/main_extract.c %/main_train.c %/main_predict.c %/main_profile.c %/main_tune.c %/main_replay.c %/main_partition.c,$(SRC))
PART := $(wildcard $(DIRS:=/main_*_*.c)) learner/main_mpi.c
LIBO := $(patsubst %.c,$(B)/%.o,$(filter-out $(MAIN) $(PART) profiler/% predictor/tune% predictor/live%,$(SRC)))
BIN  := $(foreach m,$(MAIN),$(B)/cdmpp-$(patsubst main_%.c,%,$(notdir $(m))))
TEST := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard $(DIRS:%=tests/%/test_*.c)))

# The profiler stands beside the library: who only predicts needs none of its packages. ONNX's reader
# is generated from the format's own definition.
PROFO := $(patsubst %.c,$(B)/%.o,$(filter-out $(MAIN) $(PART) profiler/wrap_heap.c,$(filter profiler/%,$(SRC)))) $(B)/gen/onnx/onnx.pb-c.o
PLIBS := -lprotobuf-c -lsqlite3 -lhwloc -ldl
ONNX_PROTO := $(firstword $(wildcard /usr/include/onnx/onnx.proto /usr/local/include/onnx/onnx.proto))
$(B)/gen/onnx/onnx.pb-c.c: $(ONNX_PROTO)
	@mkdir -p $(B)/gen && echo "  PB    $@"
	$(Q)protoc-c --c_out=$(B)/gen -I$(dir $(patsubst %/,%,$(dir $<))) $<
$(B)/gen/onnx/onnx.pb-c.h: $(B)/gen/onnx/onnx.pb-c.c ;
$(B)/gen/onnx/onnx.pb-c.o: $(B)/gen/onnx/onnx.pb-c.c $(B)/flags
	$(Q)$(CC) $(filter-out -W%,$(CFLAGS)) -I$(B)/gen -c $< -o $@
$(filter $(B)/profiler/onnx%.o,$(PROFO)): $(B)/gen/onnx/onnx.pb-c.h
$(B)/profiler/%.o: CFLAGS += -isystem $(B)/gen

# cdmpp-mpi where Open MPI is; everything else does without. It has the parts of cdmpp-train.
OMPI := $(shell pkg-config --exists ompi-c 2>/dev/null && echo ompi-c)
ifneq ($(OMPI),)
BIN += $(B)/cdmpp-mpi
$(B)/learner/main_mpi.o $(B)/learner/main_mpi_%.o: CFLAGS += $(shell pkg-config --cflags-only-I ompi-c | sed 's/-I/-isystem /g')
$(B)/cdmpp-mpi: $(patsubst %.c,$(B)/%.o,$(filter learner/main_mpi%.c learner/main_train_%.c,$(PART))) $(B)/libcdmpp.a
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(shell pkg-config --libs ompi-c)
endif

# What the commands tell about themselves: a manual page and a completion for bash and zsh each.
FACE := $(foreach c,$(notdir $(BIN)),$(B)/man/$(c).1 $(B)/bash/$(c) $(B)/zsh/_$(c))
told = @mkdir -p $(@D) && echo "  FACE  $@" && $< --help=$(1) >$@.new && mv $@.new $@
$(B)/man/%.1: $(B)/% ; $(call told,man)
$(B)/bash/%:  $(B)/% ; $(call told,bash)
$(B)/zsh/_%:  $(B)/% ; $(call told,zsh)

.PHONY: all tests deps quickstart check check-long unit cli layers symbols regress python replayers fuzz bench results \
        install uninstall clean help
all: $(B)/libcdmpp.a $(B)/libcdmpp.so $(BIN) $(FACE)

# Rewritten when the compiler or its flags change, so that objects never mix.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS)' >$@
FORCE:

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libcdmpp.a: $(LIBO)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/libcdmpp.so: $(LIBO) scripts/exports.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared -Wl,-soname,libcdmpp.so.0 -Wl,--version-script=scripts/exports.map $(LDFLAGS) -o $@ $(LIBO) $(LIBS)

$(B)/libprofiler.a: $(PROFO)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^

# The search for schedules measures what it finds, and networks are read and run by the profiler: they stand beside the library too.
TUNEO := $(patsubst %.c,$(B)/%.o,$(filter predictor/tune%.c predictor/live%.c,$(SRC)))
$(B)/libtuner.a: $(TUNEO)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^
TUNETEST := $(filter $(B)/tests/predictor/test_tune% $(B)/tests/predictor/test_live%,$(TEST)) $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_tune*.c tests/bench/bench_live*.c))
$(B)/cdmpp-tune $(B)/cdmpp-replay $(B)/cdmpp-partition $(TUNETEST): $(B)/libtuner.a $(B)/libprofiler.a
$(B)/cdmpp-tune $(B)/cdmpp-replay $(B)/cdmpp-partition $(TUNETEST): LIBS := $(PLIBS) $(LIBS)
$(TUNETEST): PROFILER := $(B)/libtuner.a $(B)/libprofiler.a

# What uses the profiler: its own command and tests.
$(B)/cdmpp-profile: $(B)/libprofiler.a
$(B)/cdmpp-profile: LIBS := $(PLIBS) $(LIBS)
PBENCH := $(addprefix $(B)/tests/bench/bench_,codegen gpucode tuned) $(B)/tests/reference/grad_values
$(filter $(B)/tests/profiler/%,$(TEST)) $(PBENCH): $(B)/libprofiler.a
$(B)/tests/profiler/% $(PBENCH): PROFILER := $(B)/libprofiler.a
$(B)/tests/profiler/% $(PBENCH): LIBS := $(PLIBS) $(LIBS)

# What `cdmpp-profile wrap` loads into other programs: nothing but itself, whatever the mode.
$(B)/libcdmpp-wrap.so: profiler/wrap_heap.c profiler/wrap_map.h $(B)/flags
	@echo "  LD    $@"
	$(Q)$(CC) $(WARN) -O2 -g -fPIC -shared -fvisibility=hidden -I. -D_GNU_SOURCE -Wl,-soname,libcdmpp-wrap.so -o $@ $< -ldl -lpthread
$(B)/cdmpp-profile $(B)/tests/profiler/test_wrap: $(B)/libcdmpp-wrap.so

define cmd
$(B)/cdmpp-$(patsubst main_%.c,%,$(notdir $(1))): $(patsubst %.c,$(B)/%.o,$(1) $(filter $(1:.c=)_%.c,$(PART))) $(B)/libcdmpp.a
	@echo "  LD    $$@"
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $$(filter %/libtuner.a,$$^) $$(filter %/libprofiler.a,$$^) $$(filter %/libcdmpp.a,$$^) $$(LIBS)
endef
$(foreach m,$(MAIN),$(eval $(call cmd,$(m))))

$(B)/tests/%: tests/%.c $(B)/libcdmpp.a $(B)/flags
	@mkdir -p $(@D)
	@echo "  TEST  $<"
	$(Q)$(CC) $(CFLAGS) -Itests/support -MMD -MP $< $(PROFILER) $(B)/libcdmpp.a $(LDFLAGS) -lcmocka $(LIBS) -o $@

# Everything that runs tests is in scripts/check.sh; here is how they are built.
tests: $(TEST)
check: # without the reference sets, however the caller set CDMPP_DATA
	@scripts/deps.sh && env -u CDMPP_DATA MODE=$(MODE) B=$(B) scripts/check.sh
check-long:
	@scripts/deps.sh && CDMPP_DATA=$(DATA) scripts/check_long.sh
unit cli regress layers symbols python: ; @MODE=$(MODE) B=$(B) scripts/check.sh $@
print-%:    ; @echo $($*)
deps:       ; @scripts/deps.sh
quickstart: ; @scripts/deps.sh && B=$(B) scripts/quickstart.sh
bench: all
	@B=$(B) CDMPP_DATA=$(DATA) scripts/bench.sh
results: $(BIN)
	@B=$(B) CDMPP_DATA=$(DATA) scripts/results.sh
	@B=$(B) CDMPP_DATA=$(DATA) scripts/results_operators.sh
	@B=$(B) CDMPP_DATA=$(DATA) scripts/results_replay.sh

FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_S ?= 60
fuzz: $(B)/gen/onnx/onnx.pb-c.c
	$(Q)FUZZ_S=$(FUZZ_S) INC="$(INC) -isystem $(B)/gen" LIBS="$(PLIBS) $(LIBS)" \
	    SRC="$(filter-out $(MAIN) $(PART) profiler/wrap_heap.c,$(SRC)) $<" scripts/fuzz.sh $(FUZZ)
# The same targets without an engine: replay the seed corpora.
PFUZZ := $(addprefix $(B)/fuzz/,onnx operators store)
$(PFUZZ): $(B)/libprofiler.a
$(PFUZZ): PROFILER := $(B)/libprofiler.a
$(PFUZZ): LIBS := $(PLIBS) $(LIBS)
$(B)/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(B)/libcdmpp.a
	@mkdir -p $(@D)
	@echo "  FUZZ  $<"
	$(Q)$(CC) $(CFLAGS) tests/fuzz/fuzz_$*.c tests/fuzz/replay.c $(PROFILER) $(B)/libcdmpp.a $(LDFLAGS) $(LIBS) -o $@
replayers: $(FUZZ:%=$(B)/fuzz/%)

install: all
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) B=$(B) scripts/install.sh
uninstall:
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) B=$(B) scripts/install.sh -u

clean: ; rm -rf build
help:  ; @sed -n 's/^# //p' Makefile | head -10
-include $(patsubst %.c,$(B)/%.d,$(SRC)) $(TEST:=.d)
