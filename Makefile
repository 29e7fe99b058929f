# croft — GNU make, no configure step. `make help` lists what there is to do.
#
#   build/croft          the host program (dynamic, PIE)
#   build/croft-guest    what runs inside a sandbox (static, musl)
#   build/asan/…         both again, with tests, under ASan and UBSan
#
# Sources are found by folder and objects are linked directly, never from an archive, so rows that
# the linker collects (commands, backends, tests) survive. make O=DIR builds elsewhere.

O       ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CC      := gcc
MUSL    := musl-gcc
VERSION := $(shell cat VERSION)
COMMIT  := $(or $(shell git rev-parse --short=12 HEAD 2>/dev/null),unknown)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0) # on all processors, unless -j says on how many
MAKEFLAGS += -j$(shell nproc)
endif

src   := $(shell find src -name '*.c')
tests := $(filter %_test.c,$(src)) $(shell find test -name '*.c' -not -path '*/probe/*' -not -path '*/echo/*')
probe := $(wildcard test/escape/probe/*.c)
echo  := $(wildcard test/echo/*.c)
code  := $(filter-out %_test.c src/main/%,$(src))
# What croft-guest has a smaller version of in src/main/guest_libc.c.
guest_less := src/base/dtoa_pow10.c src/loop/work.c
guest := $(filter-out src/out/% src/sandbox/% src/host/% src/image/% src/cli/% $(guest_less),$(code))
packed := $(patsubst %,$(O)/pack/%.z,$(shell find src -name '*.py' -o -name '*.js' -o -name '*.sh' -o -name '*.html' -o -name '*.json')) $(O)/pack/usage.z
embeds := $(shell grep -rl --include='*.c' -w '^EMBED' src)
fuzz  := $(patsubst fuzz/%.c,%,$(wildcard fuzz/*.c))
bench := $(patsubst bench/%.c,%,$(wildcard bench/*.c))

warn   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla \
          -Wundef -Wpointer-arith -Wwrite-strings -Wno-missing-field-initializers
common := -std=gnu17 -g -D_GNU_SOURCE -Isrc -I. -DCROFT_VERSION='"$(VERSION)"' -DEMBED_DIR='"$(O)/pack/"' $(warn) -MMD -MP
harden := -fstack-protector-strong -fstack-clash-protection -fcf-protection

host_opt     := -O2 -D_FORTIFY_SOURCE=2
host_cflags   = $(common) $(host_opt) -fPIE $(harden)
host_ldflags := -pie -Wl,-z,relro,-z,now,-z,noexecstack
# Static: each library that is loaded costs every start of croft. OpenSSL is loaded when wanted (src/out).
host_libs    := -Wl,-Bstatic -lyaml -lz -lzstd -llzma -lsqlite3 -Wl,-Bdynamic -lm -pthread
test_libs    := $(host_libs) -lssl -lcrypto

# The whole guest is optimised at once, for size. Functions with a character buffer are guarded; the
# guard of -strong, in all that take an address, would cost 17 KB more. zlib stays out: base/inflate
# reads, nothing writes. No relro: in a static program at a fixed place nothing applies it, and its
# alignment costs a page of file and of memory. Pages count as small: else the linker moves the data to
# a page of its own as soon as it would end in a second one, and the file grows by as much as 2 KB.
guest_opt     := -Oz -flto -flto-partition=one -fno-pie -fno-unwind-tables -fno-asynchronous-unwind-tables \
                 -fmerge-all-constants -fipa-pta -fno-jump-tables -malign-data=abi -fstack-protector
guest_cflags  := $(common) $(guest_opt) -ffunction-sections -fdata-sections -isystem $(O)/guest/include
guest_ldflags := $(guest_opt) -static -no-pie -Wl,--gc-sections,-z,norelro,-z,max-page-size=4096,--build-id=none,-T,src/main/guest.ld

san_opt    := -O1 -g1
san_cflags  = $(common) $(san_opt) -fno-omit-frame-pointer -fsanitize=address,undefined \
              -fno-sanitize-recover=all
san_ldflags := -fsanitize=address,undefined

# Calls that fault_at(n) can make fail.
wrapped := malloc calloc realloc read write readv writev pread pwrite pread64 pwrite64 \
           ftruncate64 open openat accept4 socket connect bind listen send recv sendmsg recvmsg epoll_ctl epoll_create1 eventfd \
           timerfd_create timerfd_settime signalfd fsync fdatasync ftruncate rename renameat mkdirat \
           unlinkat fork pipe2 socketpair mmap getsockname sendfile fstat \
           mount umount2 unshare setns symlinkat mknodat setrlimit sethostname \
           sys_open_tree sys_move_mount sys_mount_setattr sys_fsopen sys_fsconfig sys_fsmount \
           sys_pivot_root sys_clone3 sys_close_range sys_execveat \
           chdir dup2 fchmod fchmodat fchown fchownat flock fstatat readlinkat poll setsid setgroups \
           setresgid setresuid prlimit sys_pidfd_kill fcntl ioctl prctl syscall
wrap := $(foreach f,$(wrapped),-Wl,--wrap=$(f))

host_obj  := $(code:%.c=$(O)/host/%.o)
guest_obj := $(guest:%.c=$(O)/guest/%.o)
guest_main := guest guest_libc guest_sys
guest_strip = strip -R .comment $@.tmp && $(O)/tools/unsection $@.tmp
test_obj  := $(tests:%.c=$(O)/host/%.o)
san_obj   := $(code:%.c=$(O)/asan/%.o)
san_test_obj  := $(tests:%.c=$(O)/asan/%.o)
# Tests run once and are built often. (What may be uninitialised takes an optimiser to know.)
$(test_obj): host_opt := -O0 -g1 -Wno-maybe-uninitialized
$(san_test_obj): san_opt := -O0 -g1 -Wno-maybe-uninitialized
san_guest_obj := $(patsubst %.c,$(O)/asan/%.o,$(guest) $(guest_less))

.PHONY: all help run test check-plain check-asan soak shape layers lint format fuzz bench \
        install clean deps deps-test vm vm-systemd
all: $(O)/croft $(O)/croft-guest ## build both programs

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- programs -------------------------------------------------------------------------------------

$(O)/croft: $(host_obj) $(O)/host/src/main/croft.o $(O)/host/embed.o $(host_more)
	@echo "  LINK  $@"
	@$(CC) $(host_ldflags) -o $@ $^ $(host_libs)

$(O)/croft-guest: $(guest_obj) $(guest_main:%=$(O)/guest/src/main/%.o) $(guest_more) src/main/guest.ld | $(O)/tools/unsection
	@echo "  LINK  $@"
	@$(MUSL) $(guest_ldflags) -o $@.tmp $(filter %.o,$^)
	@$(guest_strip) && mv $@.tmp $@

$(O)/asan/croft: $(san_obj) $(O)/asan/src/main/croft.o $(O)/asan/embed.o
	@echo "  LINK  $@"
	@$(CC) $(san_ldflags) -o $@ $^ $(host_libs)

$(O)/asan/croft-guest: $(san_guest_obj) $(O)/asan/src/main/guest.o
	@echo "  LINK  $@"
	@$(CC) $(san_ldflags) -o $@ $^ -lz -pthread

$(O)/test-croft: $(host_obj) $(test_obj) $(O)/host/embed.o
	@echo "  LINK  $@"
	@$(CC) $(host_ldflags) $(wrap) -o $@ $^ $(test_libs)

$(O)/asan/test-croft: $(san_obj) $(san_test_obj) $(O)/asan/embed.o
	@echo "  LINK  $@"
	@$(CC) $(san_ldflags) $(wrap) -o $@ $^ $(test_libs)

# What wire tests of src/net and bench/http talk to.
$(O)/echo-server: $(host_obj) $(echo:%.c=$(O)/host/%.o) $(O)/host/embed.o
	@echo "  LINK  $@"
	@$(CC) $(host_ldflags) -o $@ $^ $(host_libs)

$(O)/asan/echo-server: $(san_obj) $(echo:%.c=$(O)/asan/%.o) $(O)/asan/embed.o
	@echo "  LINK  $@"
	@$(CC) $(san_ldflags) -o $@ $^ $(host_libs)

# Tries to leave a sandbox; static, so that it needs nothing inside.
$(O)/escape-probe $(O)/asan/escape-probe: $(probe) $(wildcard test/escape/probe/*.h) Makefile | $(O)/guest/include/.done
	@echo "  LINK  $@"
	@mkdir -p $(@D)
	@$(MUSL) -static -O1 $(filter-out -MMD -MP,$(common)) -isystem $(O)/guest/include -o $@ $(probe)

$(O)/test-croft: | $(O)/escape-probe $(O)/echo-server
$(O)/asan/test-croft: | $(O)/asan/escape-probe $(O)/asan/echo-server

# The one file that knows the commit, and the stamp that changes with it.
commit_obj := $(foreach d,host asan fuzz,$(O)/$d/src/host/ops/commit.o)
$(shell mkdir -p $(O) && { echo $(COMMIT) | cmp -s - $(O)/.commit || echo $(COMMIT) >$(O)/.commit; })
$(commit_obj): common += -DCROFT_COMMIT='"$(COMMIT)"'
$(commit_obj): $(O)/.commit

$(O)/host/embed.o $(O)/asan/embed.o: src/main/embed.S $(O)/croft-guest
	@mkdir -p $(@D)
	@$(CC) -c -DGUEST_FILE='"$(O)/croft-guest"' -o $@ $<

$(O)/host/%.o: %.c Makefile | $(O)/.deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(host_cflags) -c -o $@ $<

$(O)/asan/%.o: %.c Makefile | $(O)/.deps
	@mkdir -p $(@D)
	@echo "  ASAN  $<"
	@$(CC) $(san_cflags) -c -o $@ $<

$(O)/pack/%.z: % $(O)/tools/pack
	@mkdir -p $(@D)
	@$(O)/tools/pack $< $@

$(O)/pack/usage.z: tools/usage.c src/guest/exec/exec.h $(O)/tools/pack
	@mkdir -p $(@D)
	@$(CC) -std=gnu17 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -o $(O)/tools/usage $<
	@$(O)/tools/usage >$(O)/tools/usage.txt && $(O)/tools/pack $(O)/tools/usage.txt $@

$(O)/tools/pack $(O)/tools/unsection: $(O)/tools/%: tools/%.c | $(O)/.deps
	@mkdir -p $(@D)
	@$(CC) -std=gnu17 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -o $@ $< -lz

$(foreach d,host guest asan fuzz,$(embeds:%.c=$(O)/$d/%.o)): $(packed)

# musl has no kernel headers and no zlib of its own: lend it exactly those.
$(O)/guest/include/.done: Makefile | $(O)/.deps
	@mkdir -p $(@D)
	@ln -sfn /usr/include/linux $(@D)/linux
	@ln -sfn /usr/include/asm-generic $(@D)/asm-generic
	@ln -sfn /usr/include/$(shell $(CC) -print-multiarch)/asm $(@D)/asm
	@ln -sf /usr/include/zlib.h /usr/include/zconf.h $(@D)/
	@touch $@

$(O)/guest/%.o: %.c Makefile $(O)/guest/include/.done
	@mkdir -p $(@D)
	@echo "  GUEST $<"
	@$(MUSL) $(guest_cflags) -c -o $@ $<

-include $(shell [ -d $(O) ] && find $(O) -path $(O)/vm -prune -o -name 'test-state*' -prune -o -name "*.d" -type f -print)

# --- what people type -----------------------------------------------------------------------------

# Packages are looked at once per build folder; installing needs root or sudo and says so.
$(O)/.deps: tools/deps
	@tools/deps build
	@mkdir -p $(O) && touch $@

deps-test:
	@tools/deps build test

run: all ## build, then show what it does
	@tools/deps run
	@tools/demo $(O)/croft

test: deps-test ## all a landing must pass; T=name: the tests of that name, plain and under ASan+UBSan
	@T='$(T)' tools/test $(O)

check-plain: $(O)/croft $(O)/croft-guest $(O)/test-croft ## tests only, as built; T=name filters, T==name is exactly that one
	$(O)/test-croft $(T)

check-asan: $(O)/asan/croft $(O)/asan/croft-guest $(O)/asan/test-croft ## tests under ASan+UBSan; T=name filters
	$(O)/asan/test-croft $(T)

SOAK_CYCLES ?= 10000
SOAK_KILLS  ?= 200
soak: $(O)/croft $(O)/croft-guest $(O)/test-croft ## 10,000 sandboxes made and removed, 200 kills, nothing left; minutes
	@CROFT_SOAK_CYCLES=$(SOAK_CYCLES) CROFT_SOAK_KILLS=$(SOAK_KILLS) CROFT_SOAK_PROGRESS=/proc/$$$$/fd/2 \
	    $(O)/test-croft --jobs 1 native/soak_test
	@CROFT_SOAK_CLAIMS=1000 $(O)/test-croft --jobs 1 many_claims_leave_nothing
	@CROFT_SOAK_SERVER_KILLS=50 $(O)/test-croft --jobs 1 serve_killed_under_load
	@CROFT_SOAK_PAUSES=1000 $(O)/test-croft --jobs 1 serve_pause_test

# Built so that every function that runs outside base, loop and net notes itself.
S := $(O)/shape
way := -O0 -finstrument-functions -finstrument-functions-exclude-file-list=src/base,src/loop,src/net,src/main -Wno-maybe-uninitialized
shape: ## counts of how the tree reads, and the way of one warm start, beside the tree before
	@tools/shape
	@$(MAKE) -s O=$(S) host_opt='$(way)' guest_opt='$(way) -fno-pie' guest_ldflags='-static -no-pie -Wl,--gc-sections' guest_strip=true \
	    host_more=$(S)/host/tools/way_log.o guest_more=$(S)/guest/tools/way_log.o $(S)/croft >$(S).log 2>&1 || { tail -n 40 $(S).log; exit 1; }
	@tools/way $(S)

layers: ## prove the include order of the folders
	@tools/layers

lint: ## clang-format and clang-tidy on what changed; BASE=rev
	@tools/lint

format: ## clang-format everything
	@clang-format -i $(shell git ls-files '*.c' '*.h')

# --- fuzzing: make fuzz TARGET=json SECONDS=600 -----------------------------------------------------

# What the targets reach: compiling all for libFuzzer takes longer than the short fuzz of make test.
fuzz_code := $(filter $(addprefix src/,base/% loop/% net/% wire/% event/% image/% \
                 $(addprefix guest/,held/% proc/% spawn/% term/% tool/% zip/%)),$(code)) \
             $(addprefix src/guest/,$(addprefix edit/,binary.c diff.c encoding.c pytext.c space.c text.c) \
                 exec/actions/run/git.c init/tunnel.c jupyter/message.c jupyter/zmtp.c \
                 $(addprefix shell/,shell_meta.c shell_text.c split.c split_grammar.c)) \
             $(addprefix src/host/,build/form.c build/hear.c config/yaml.c config/yaml_scalar.c keys/body.c \
                 proxy/name.c proxy/peek.c runtime/words.c subids/parse.c) \
             src/sandbox/native/msg.c

$(O)/fuzz/%.o: %.c Makefile | $(O)/.deps
	@mkdir -p $(@D)
	@echo "  FUZZ  $<"
	@clang $(common) -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all $(target) -c -o $@ $<

# One program for all targets, each under its own name: linking one for each took longer than to fuzz.
$(fuzz:%=$(O)/fuzz/fuzz/%.o): target = -DLLVMFuzzerTestOneInput=fuzz_$(*F)
$(O)/fuzz/tools/fuzz_all.o: target = -DTARGETS='$(patsubst %,TARGET(%),$(fuzz))'
$(O)/fuzz/run: $(fuzz_code:%.c=$(O)/fuzz/%.o) $(fuzz:%=$(O)/fuzz/fuzz/%.o) $(O)/fuzz/tools/fuzz_all.o
	@echo "  LINK  $@"
	@clang -fsanitize=fuzzer,address,undefined -o $@ $^ -lyaml -lz -l:libzstd.a -l:liblzma.a -pthread

.PRECIOUS: $(O)/fuzz/%.o $(O)/host/%.o $(O)/asan/%.o $(O)/guest/%.o

TARGET  ?= $(fuzz)
SECONDS ?= 60
fuzz: $(O)/fuzz/run ## fuzz each parser; TARGET=json SECONDS=600
	@tools/fuzz $(O) $(SECONDS) $(TARGET)

# --- speed: make bench, or make bench B=json ----------------------------------------------------------

bench_kit := $(patsubst %.c,$(O)/host/%.o,$(wildcard bench/kit/*.c))
.PRECIOUS: $(bench_kit)
$(O)/bench/%: $(O)/host/bench/%.o $(bench_kit) $(host_obj) $(O)/host/embed.o
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(host_ldflags) -o $@ $^ $(test_libs)

B ?= all
bench: all $(O)/echo-server $(bench:%=$(O)/bench/%) ## ratios to peers, measured in the same run; B=json
	@tools/deps build bench
	@bench/run $(O) $(B)

# --- another kernel: make vm V='build/test-croft escape' CGROUPS=hybrid -------------------------------

V       ?= build/croft doctor
CGROUPS ?= v2
vm: $(O)/croft $(O)/croft-guest $(O)/test-croft ## a command as root on Debian 12's kernel, in qemu; V="build/test-croft native"
	@tools/deps build vm
	@tools/vm --cgroups $(CGROUPS) -- '$(V)'

vm-systemd: $(O)/croft $(O)/croft-guest $(O)/test-croft ## our units under a real systemd, in qemu; CGROUPS=hybrid
	@tools/deps build vm
	@tools/vm --systemd --cgroups $(CGROUPS) -- test/deploy/systemd.sh
	@tools/vm --systemd --cgroups $(CGROUPS) -- test/deploy/user.sh

install: all ## into $(DESTDIR)$(PREFIX)
	install -D -m 755 $(O)/croft $(DESTDIR)$(PREFIX)/bin/croft
	install -D -m 755 $(O)/croft-guest $(DESTDIR)$(PREFIX)/lib/croft/croft-guest
	install -D -m 644 doc/croft.1 $(DESTDIR)$(PREFIX)/share/man/man1/croft.1
	install -D -m 644 deploy/systemd/croft.socket $(DESTDIR)$(PREFIX)/lib/systemd/system/croft.socket
	install -D -m 644 deploy/systemd/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/croft.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,/usr/local/bin,$(PREFIX)/bin,' deploy/systemd/croft.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/croft.service

clean: ## remove what was built
	rm -rf $(O)
