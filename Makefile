# make             libcdmpp.a, libcdmpp.so and every cdmpp-* command, in build/release
# make quickstart  install what building needs, build, first answers, train on the sample
# make check       unit tests, command tests, fuzz corpora, layers, pages (installs what it needs)
# make check-fast  layers, layout, and the unit tests of rooms that changed since FAST_REV (HEAD~1)
# make check-long  sanitizers with refused allocations, threads, reports, sets under $CDMPP_DATA
# make results     measure what docs/results publishes and write its pages; STAGES= names some
# make regress     outputs of 120 command lines, compared with those of REGRESS_REV
# make bench       speed and memory figures; BARS=1: fails where a bar is missed
# make hostile     a thousand hostile files, each given to its command; N=, SEED=
# make hostile-bombs   small files that expand to large ones, each given to its command
# make fuzz        every fuzz target for FUZZ_S seconds each (clang)
# make coverage    lines and branches of the readers of untrusted files that tests take; fails below 95 %
# make deps        apt packages
# make model       train the shipped cost models again and compare them with those of models/
# make install     PREFIX=/usr/local DESTDIR=;  make uninstall
# make deb         Debian packages into build/deb
# make wheel       a Python wheel with everything in it, into build/wheel
# make tarball     an archive that runs where it is unpacked, into build/tarball
# make help        this text;  V=1 shows commands, MODE=san|tsan|cov other builds, WERROR= warns only
.DEFAULT_GOAL := all
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

MODE ?= release
B ?= build/$(MODE)
ifeq ($(origin CC),default)
CC = gcc
endif
# Where the reference data are (docs/reference/data.md); empty where there are none.
CDMPP_DATA ?= $(wildcard ../shared/data)
DATA = $(abspath $(CDMPP_DATA))
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= lib
WERROR ?= -Werror
WARN := -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wdouble-promotion -Wcast-qual $(WERROR)
OPT_release := -O3 -g1
# Sanitizers, and allocations that a test can refuse (tests/support/base/fault.h).
OPT_san     := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DCD_FAULT
OPT_tsan    := -O1 -g1 -fsanitize=thread
# Coverage of readers (scripts/coverage.py). What an assertion refuses is our mistake, which no test can make.
OPT_cov     := -O0 -g --coverage -DCD_FAULT=2 -DNDEBUG
# Debian names the serial HDF5 after its flavour; other systems just hdf5.
HDF5_PC := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
INC     := $(shell pkg-config --cflags-only-I $(HDF5_PC) 2>/dev/null | sed 's/-I/-isystem /g') -isystem $(B)/gen -I$(B)/gen/embed
OPENBLAS := $(shell pkg-config --libs openblas 2>/dev/null || echo -lopenblas) -llapacke
LIBS    := $(shell pkg-config --libs $(HDF5_PC) 2>/dev/null || echo -lhdf5) -lxgboost $(OPENBLAS) -lyaml -llzma -lzstd -lz \
           -lprotobuf-c -lsqlite3 -lhwloc -lcrypto -ldl -lpthread -lm
CFLAGS  := $(WARN) $(OPT_$(MODE)) -ffp-contract=off -fvisibility=hidden -fPIC -I. $(INC) -D_GNU_SOURCE $(EXTRA)
# Only the libraries that a program calls are loaded with it.
LDFLAGS := -Wl,--as-needed $(EXTRA_LDFLAGS) $(filter -fsanitize% --coverage,$(OPT_$(MODE)))

# A new .c file needs no edit here: sources in a folder cmd/ are commands, main_<x>.c and its parts
# main_<x>_<y>.c become cdmpp-<x>; all others are the library.
DIRS := base features dataset profiler learner predictor
ALL  := $(sort $(shell find $(DIRS) -name '*.c'))
CMD  := $(foreach f,$(ALL),$(if $(findstring /cmd/,$(f)),$(f)))
WRAP := profiler/wrap/process_profile_heap.c profiler/wrap/process_profile_spans.c
MPI  := learner/distributed/mpi_group.c
SRC  := $(filter-out $(CMD) $(WRAP) $(MPI),$(ALL))
LIBO := $(SRC:%.c=$(B)/%.o) $(B)/gen/onnx/onnx.pb-c.o
# TSan sees base and the rooms that start threads, coverage the readers of untrusted files, with the allocator
# that refuses.
ifeq ($(MODE),tsan)
OWN := $(addsuffix %,base/ $(sort $(dir $(shell grep -lE 'cd_threads_|pthread_create' $(SRC)))))
endif
ifeq ($(MODE),cov)
OWN := base/core/% $(shell sed 's/ *\#.*//' scripts/coverage_readers.txt)
endif
ifdef OWN
# The other objects are those of the release build.
LIBO := $(foreach f,$(SRC),$(if $(filter $(OWN),$f),$(B),build/release)/$(f:%.c=%.o)) build/release/gen/onnx/onnx.pb-c.o
release_objects: ; @$(MAKE) MODE=release B=build/release build/release/libcdmpp.a
$(filter build/release/%,$(LIBO)): | release_objects ;
endif
# One test program a room, of all its files test_*.c (tests/support/base/check_main.c).
TESTC := $(sort $(shell find $(DIRS:%=tests/%) -name 'test_*.c'))
TROOM := $(patsubst %/,%,$(sort $(dir $(TESTC))))
TEST  := $(TROOM:%=$(B)/%/units)
# Commands without cdmpp-mpi, which needs Open MPI; `cdmpp` starts the others.
NAME := extract train predict profile tune replay partition
BIN  := $(B)/cdmpp $(NAME:%=$(B)/cdmpp-%)
# Objects of command $(1).
parts = $(patsubst %.c,$(B)/%.o,$(foreach f,$(CMD),$(if $(filter main_$(1).c main_$(1)_%.c,$(notdir $(f))),$(f))))

# ONNX's messages are generated from the format's own definition, under names of ours.
ONNX_PROTO := $(firstword $(wildcard /usr/include/onnx/onnx.proto /usr/local/include/onnx/onnx.proto))
GEN := $(B)/gen/onnx/onnx.pb-c
$(GEN).c: $(ONNX_PROTO)
	@mkdir -p $(@D) && echo "  PB    $@"
	$(Q)sed 's/^package onnx;/package cd_onnx;/' $< >$(@D)/onnx.proto && protoc-c --c_out=$(@D) -I$(@D) $(@D)/onnx.proto
$(GEN).h: $(GEN).c ;
$(GEN).o: $(GEN).c $(B)/flags
	$(Q)$(CC) $(filter-out -W%,$(CFLAGS)) -I$(@D) -c $< -o $@
$(filter $(B)/profiler/network/onnx/% $(B)/learner/export/%,$(LIBO)): $(GEN).h

# Files of web/ and embed/ folders are built in: room/web/x.js is `static const char x_js[]` of "room/web/x.js.h".
EMBED := $(patsubst %,$(B)/gen/embed/%.h,$(sort $(shell find $(DIRS) -path '*/web/*.*' -o -path '*/embed/*.*')))
$(B)/gen/embed/%.h: % scripts/embed.sh
	@mkdir -p $(@D) && echo "  EMBED $<"
	$(Q)scripts/embed.sh $< >$@.new && mv $@.new $@
$(LIBO) $(CMD:%.c=$(B)/%.o): | $(EMBED)

# cdmpp-mpi where Open MPI is; everything else does without. It has the parts of cdmpp-train.
OMPI := $(shell pkg-config --exists ompi-c 2>/dev/null && echo ompi-c)
ifneq ($(OMPI),)
BIN += $(B)/cdmpp-mpi
$(MPI:%.c=$(B)/%.o): CFLAGS += $(shell pkg-config --cflags-only-I ompi-c | sed 's/-I/-isystem /g')
$(B)/cdmpp-mpi: $(filter-out %/main_train.o,$(call parts,train)) $(MPI:%.c=$(B)/%.o)
$(B)/cdmpp-mpi: LIBS += $(shell pkg-config --libs ompi-c)
endif

# What the commands print about themselves: a manual page and a completion for bash and zsh each.
HELP := $(foreach c,$(notdir $(BIN)),$(B)/man/$(c).1 $(B)/bash/$(c) $(B)/zsh/_$(c))
print_help = @mkdir -p $(@D) && echo "  HELP  $@" && $< --help=$(1) >$@.new && mv $@.new $@
$(B)/man/%.1: $(B)/% ; $(call print_help,man)
$(B)/bash/%:  $(B)/% ; $(call print_help,bash)
$(B)/zsh/_%:  $(B)/% ; $(call print_help,zsh)

.PHONY: release_objects hostile hostile-bombs all tests model deps quickstart check check-fast check-long unit cli corpora layers format docs figures guide symbols regress mutate coverage python replayers fuzz bench results \
        install uninstall deb wheel tarball clean help
all: $(B)/libcdmpp.a $(B)/libcdmpp.so $(BIN) $(HELP)

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
	$(Q)ln -sf $(@F) $@.0

# What `cdmpp-profile wrap` loads into other programs: nothing but itself, whatever the mode.
$(B)/libcdmpp-wrap.so: $(WRAP) profiler/wrap/process_profile_map.h $(B)/flags
	@echo "  LD    $@"
	$(Q)$(CC) $(WARN) -O2 -g -fPIC -shared -fvisibility=hidden -I. -D_GNU_SOURCE -Wl,-soname,libcdmpp-wrap.so -o $@ $(WRAP) -ldl -lpthread
$(B)/cdmpp-profile $(B)/tests/profiler/wrap/units: | $(B)/libcdmpp-wrap.so

define cmd
$(B)/cdmpp-$(1): $(call parts,$(1)) $(B)/libcdmpp.a
	@echo "  LD    $$@"
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $(B)/libcdmpp.a $$(LIBS)
endef
$(foreach m,$(patsubst $(B)/cdmpp-%,%,$(filter $(B)/cdmpp-%,$(BIN))),$(eval $(call cmd,$(m))))
$(B)/cdmpp: $(call parts,cdmpp) $(B)/libcdmpp.a
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(B)/libcdmpp.a $(LIBS)

# Tests are compiled for a debugger, not for speed; -O3 would take as long for them as for the library.
SUPPORT := $(wildcard tests/support/*/)
TFLAGS = $(subst $(OPT_release),-O1 -g1,$(subst $(OPT_cov),-O0 -g1 -DCD_FAULT=2,$(CFLAGS))) $(SUPPORT:%=-I%)
$(B)/tests/%.o: tests/%.c $(B)/flags | $(EMBED) $(GEN).h
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(TFLAGS) -MMD -MP -c $< -o $@
define units
$(B)/$(1)/units: $(foreach f,$(TESTC),$(if $(filter $(1)/,$(dir $f)),$(f:%.c=$(B)/%.o))) $(B)/tests/support/base/check_main.o $(B)/libcdmpp.a
	@echo "  LD    $$@"
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ -lcmocka $$(LIBS)
endef
$(foreach r,$(TROOM),$(eval $(call units,$(r))))
# Programs of tests/bench and tests/reference.
$(B)/tests/%: $(B)/tests/%.o $(B)/libcdmpp.a
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Everything that runs tests is in scripts/check.sh; here is how they are built.
tests: $(TEST)
check: # without the reference sets, however the caller set CDMPP_DATA
	@scripts/deps.sh && env -u CDMPP_DATA MODE=$(MODE) B=$(B) scripts/check.sh
# While one works: FAST_REV names what to compare with.
check-fast:
	@scripts/deps.sh && MODE=$(MODE) B=$(B) scripts/check.sh fast
check-long:
	@scripts/deps.sh && CDMPP_DATA=$(DATA) scripts/check_long.sh
unit cli corpora layers format docs figures guide symbols python: ; @MODE=$(MODE) B=$(B) scripts/check.sh $@
# The same command lines by this build and by that of an earlier revision: REGRESS_REV=..., outputs compared.
regress: all
	@B=$(B) CDMPP_DATA=$(DATA) scripts/regress.sh against $(REGRESS_REV)
print-%:    ; @echo $($*)
deps:       ; @scripts/deps.sh
quickstart: ; @scripts/deps.sh -b && B=$(B) scripts/quickstart.sh
# Random mistakes, and which tests notice them: N of them drawn by SEED, in ROOMS (all).
N ?= 100
SEED ?= 1
mutate: deps ; @python3 scripts/mutate/run.py -n $(N) --seed $(SEED) $(ARGS) $(ROOMS)
# Branches of readers that no test takes: ARGS='--missed FILE' lists them.
coverage: deps ; @python3 -B scripts/coverage.py $(ARGS)
# Small hostile files of all formats, each given to its command: no crash, no hang, no gigabyte.
hostile-bombs: all ; @B=$(B) python3 -B scripts/hostile/bombs.py $(ARGS)
hostile: all ; @B=$(B) python3 -B scripts/hostile/run.py -n $(if $(filter command line,$(origin N)),$(N),1000) --seed $(SEED) $(ARGS)
bench: all
	@B=$(B) CDMPP_DATA=$(DATA) BARS=$(BARS) scripts/bench.sh $(SETS)
results: $(BIN)
	@B=$(B) CDMPP_DATA=$(DATA) scripts/results/run.sh $(STAGES)

FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_S ?= 60
fuzz: $(GEN).c $(EMBED)
	$(Q)FUZZ_S=$(FUZZ_S) INC="$(INC)" LIBS="$(LIBS)" SRC="$(SRC) $(GEN).c" scripts/fuzz.sh $(FUZZ)
# The same targets without an engine, in one program that replays the seed corpora.
$(B)/gen/fuzz_targets.def: $(FUZZ:%=tests/fuzz/fuzz_%.c)
	@mkdir -p $(@D) && printf 'TARGET(%s)\n' $(FUZZ) >$@
$(B)/fuzz/replay.o: tests/fuzz/replay.c $(B)/gen/fuzz_targets.def $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -I$(B)/gen -MMD -MP -c $< -o $@
$(B)/fuzz/%.o: tests/fuzz/fuzz_%.c $(B)/flags | $(EMBED) $(GEN).h
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(TFLAGS) -DLLVMFuzzerTestOneInput=fuzz_$* $(if $(filter cov,$(MODE)),-Dabort=fuzz_stop) -MMD -MP -c $< -o $@
$(B)/fuzz/replay: $(B)/fuzz/replay.o $(FUZZ:%=$(B)/fuzz/%.o) $(B)/libcdmpp.a
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
replayers: $(B)/fuzz/replay

# Trains the shipped models again and compares them with those of models/ (MODELS="cpu gpu llm"); SHIP=1 puts them there.
model: all ; @B=$(B) CDMPP_DATA=$(DATA) scripts/models.sh $(MODELS)

install: all
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) B=$(B) scripts/install.sh
deb: ; @scripts/deb.sh
# Commands, library, models and what they need, for any environment of Python (scripts/wheel.py).
wheel: all ; @scripts/deps.sh -b patchelf binutils python3 && B=$(B) python3 -B scripts/wheel.py
# What is installed, with the libraries that it needs (scripts/tarball.py).
tarball: all ; @scripts/deps.sh -b patchelf binutils python3 xz-utils && B=$(B) python3 -B scripts/tarball.py
uninstall:
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) B=$(B) scripts/install.sh -u

clean: ; rm -rf build
help:  ; @sed -n '/^\.DEFAULT_GOAL/q; s/^# //p' Makefile
-include $(patsubst %.c,$(B)/%.d,$(SRC) $(CMD) $(TESTC) tests/support/base/check_main.c) $(FUZZ:%=$(B)/fuzz/%.d) $(B)/fuzz/replay.d
