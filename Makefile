# Loom's toolbox. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X loom/app/telemetry.Version=$(VERSION)
DATA_DIR := $(or $(LOOM_DATA_DIR),./var)

# What Loom needs from Debian: a program to look for, and the package that has it.
RUN_DEPS := /usr/lib/postgresql/*/bin/postgres=postgresql mmdebstrap=mmdebstrap nft=nftables ip=iproute2
TEST_DEPS := $(RUN_DEPS) sshd=openssh-server chromium-headless-shell=chromium-headless-shell gcc=gcc /usr/include/stdlib.h=libc6-dev sudo=sudo curl=curl puppet=puppet-agent jq=jq python3=python3 openssl=openssl sqlite3=sqlite3 glewlwyd=glewlwyd

# Packages in which goroutines share state are tested with the race detector, the others without.
RACE := ./jobs/work ./app/live ./provisioner/remote
TAGS := browser e2e

# The packages that take longest come first. Vetting is the business of `make check`.
FIRST := ./app/cli ./app/lab ./app/web
TEST := go test -vet=off

# needs LIST: installs what is missing where it may, else names the command and stops.
define needs
missing=(); \
for pair in $(1); do \
  program="$${pair%%=*}"; package="$${pair#*=}"; \
  PATH="$$PATH:/usr/sbin:/sbin" type -P "$$program" >/dev/null || compgen -G "$$program" >/dev/null || missing+=("$$package"); \
done; \
if [ $${#missing[@]} -gt 0 ]; then \
  if [ "$$(id -u)" = 0 ] && type -P apt-get >/dev/null; then \
    echo "installing $${missing[*]}"; \
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$${missing[@]}" >/dev/null; \
  else \
    echo "Loom needs some programs of Debian. Install them with:"; echo; \
    echo "  sudo apt-get install -y --no-install-recommends $${missing[*]}"; echo; exit 1; \
  fi; \
fi
endef

.PHONY: help
help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14
	@echo; echo "Another data directory or port: export LOOM_DATA_DIR and LOOM_LISTEN_ADDR, for run, stop, clean and bin/loom alike."

.PHONY: run
run: deps-run build ## start Loom: private Postgres, all processes, local machines
	@exec bin/loom up

# scratch runs what follows with a private PostgreSQL for tests and removes it.
# Some tests need a catalog that is no part of Loom: the one that LOOM_TEST_CATALOG names, or one beside the repository.
define scratch
export LOOM_DATA_DIR="$(CURDIR)/var/test" LOOM_TEST_REQUIRE=1 LOOM_TEST_BASE_DIR="$(CURDIR)/var/test/base"; \
if [ -z "$${LOOM_TEST_CATALOG:-}" ] && [ ! -d ../shared/data/catalog ]; then \
  export LOOM_TEST_CATALOG=none; echo "LOOM_TEST_CATALOG names no catalog: the tests that need an outside one are skipped"; \
fi; \
trap 'bin/loom db remove >/dev/null' EXIT; \
bin/loom db remove >/dev/null; \
LOOM_TEST_DATABASE_URL="$$(bin/loom db start --scratch)"; export LOOM_TEST_DATABASE_URL; unset LOOM_DATA_DIR; \
trap 'LOOM_DATA_DIR="$(CURDIR)/var/test" bin/loom db remove >/dev/null' EXIT;
endef

# PKG and RUN choose packages and tests: make test PKG=./app/web RUN=TestHome
PKG ?=
RUN ?=
.PHONY: test
test: deps build ## every test there is, or those of PKG=./app/web RUN=TestHome
	@$(scratch) \
	if [ -n '$(PKG)' ]; then $(TEST) -timeout 70m -tags '$(TAGS)' -run '$(RUN)' $(PKG); exit; fi; \
	status=0; export LOOM_TEST_SKIPPED="$(CURDIR)/var/test/skipped"; rm -f "$$LOOM_TEST_SKIPPED"; \
	$(TEST) -race -timeout 20m $(RACE) || status=$$?; \
	$(TEST) -timeout 70m -tags '$(TAGS)' $(FIRST) $$(go list ./... | grep -vxF "$$(go list $(RACE))") || status=$$?; \
	if [ -s "$$LOOM_TEST_SKIPPED" ]; then echo "Skipped, because this host cannot run them:"; sort -u "$$LOOM_TEST_SKIPPED"; fi; \
	exit $$status

.PHONY: screenshots
screenshots: deps build ## pictures of all pages, light and dark, wide and narrow, in var/screenshots
	@rm -rf var/screenshots; mkdir -p var/screenshots; $(scratch) \
	LOOM_SCREENSHOTS="$(CURDIR)/var/screenshots" go test -count 1 -timeout 15m -tags '$(TAGS)' ./app/cli -run '^TestEveryPage$$'

# What `make recordings` of two commits wrote is compared with `diff -r`.
DIR ?= var/recordings
.PHONY: recordings
recordings: deps build ## answers of all routes for each role, and plans of 500 clusters, into DIR (var/recordings)
	@rm -rf '$(DIR)'; mkdir -p '$(DIR)'; export LOOM_RECORD="$$(cd '$(DIR)' && pwd)"; $(scratch) \
	go test -vet=off -count 1 -timeout 30m -tags '$(TAGS)' ./app/clusters ./app/cli -run '^TestRecord'

.PHONY: check
check: ## format, vet, lint, generated and vendored files; no tests
	@unformatted="$$(git ls-files '*.go' | xargs gofmt -l)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	@before="$$(sha256sum $$(git ls-files '*_templ.go') docs/configuration.md docs/schema.md 2>/dev/null || true)"; \
	$(MAKE) --no-print-directory generate; \
	after="$$(sha256sum $$(git ls-files '*_templ.go') docs/configuration.md docs/schema.md 2>/dev/null || true)"; \
	if [ "$$before" != "$$after" ]; then echo "generated files were stale: commit what make generate made"; \
	diff <(echo "$$before") <(echo "$$after") | sed -n 's/^> [0-9a-f]*  //p'; exit 1; fi
	@cd static && grep -E '"(file": "(vendor/|icons.svg)|sha256":)' vendor/vendor.json | cut -d '"' -f 4 | paste - - | awk '{print $$2 "  " $$1}' | sha256sum --quiet --strict -c -
	@go mod verify >/dev/null
	go vet -tags '$(TAGS)' ./...
	go tool staticcheck -tags '$(shell echo $(TAGS) | tr ' ' ',')' ./...

.PHONY: build
build: ## bin/loom
	@test -e bin/loom || echo "Building Loom; the first time this takes a minute or two."
	@go build -ldflags '$(LDFLAGS)' -o bin/loom ./app

.PHONY: generate
generate: ## templates, docs/configuration.md and docs/schema.md
	@go tool templ generate -path views >/dev/null 2>&1 || go tool templ generate -path views
	@$(MAKE) --no-print-directory build && for page in config:configuration migrate:schema; do \
	  bin/loom "$${page%:*}" --markdown > docs/"$${page#*:}".md.new && mv docs/"$${page#*:}".md.new docs/"$${page#*:}".md || exit 1; done

.PHONY: fmt
fmt: ## format Go and templates
	@gofmt -w $$(git ls-files '*.go'); go tool templ fmt views

.PHONY: bench
bench: deps build ## figures: create to serving, memory, tasks per second, solver, planner
	@LOOM_TEST_BASE_DIR="$(CURDIR)/var/test/base" bin/loom bench

# How many faults, and which ones: a seed that a run printed repeats its faults.
SOAK_POINTS ?= 2000
SOAK_SEED ?=

.PHONY: soak
soak: deps build ## kill, freeze and cut off processes at SOAK_POINTS points; nothing may be lost or doubled
	@bin/loom soak --points $(SOAK_POINTS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

.PHONY: deps deps-run
deps: ## install (or name) what tests need from Debian
# The package of glewlwyd starts a service on all addresses, with a password that everybody knows.
	@if [ "$$(id -u)" = 0 ] && [ -d /run/systemd/system ] && ! type -P glewlwyd >/dev/null; then systemctl mask glewlwyd.service; fi
	@$(call needs,$(TEST_DEPS))
deps-run:
	@$(call needs,$(RUN_DEPS))

.PHONY: stop
stop: build ## stop machines and the private Postgres, keep their files
	@bin/loom stop

.PHONY: clean-db
clean-db: build ## remove the private database (machines are removed too: nothing would know them)
	@bin/loom clean --keep-bases

.PHONY: vendor
vendor: ## fetch the browser libraries that static/vendor/vendor.json names
	@static/vendor/fetch.sh

.PHONY: clean
clean: build ## remove everything an instance made: machines, bridges, packet filter, database, files
	@bin/loom clean
	@LOOM_DATA_DIR="$(CURDIR)/var/test" bin/loom clean
	@rm -rf bin
