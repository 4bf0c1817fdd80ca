# Every target works in a fresh clone: whatever needs the environment makes it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What `make results` computes: all chapters, or those named in ONLY="moments ...".
ONLY ?= $(basename $(notdir $(wildcard notebooks/*.md)))
# Two workers; the tests of one file stay together, so what they share is made once. Files start in the order of
# their names: by their number of tests, the chapters, few and long, would come last and keep one core waiting.
TESTFLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help book test lint format results bench lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{ printf "%-16s %s\n", $$1, $$2 }'

book: $(STAMP) ## execute the chapters, build the book, print the path of its first page
	$(BIN)/robustbook build

test: $(STAMP) ## run all tests: library, chapters, the built book in a browser
	$(BIN)/python -m pytest $(TESTFLAGS)

lint: $(STAMP) ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## let ruff repair and format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

results: $(STAMP) ## compute what is missing at laptop scale (hours, resumable; ONLY="moments" for one)
	$(BIN)/robustbook run $(ONLY) --profile laptop

# What the benchmarks compare with. Without their dependencies: those would change the book's own packages.
PEERS := adv-lib==0.2.8 torchattacks==3.5.1 imagecorruptions==1.1.2 scikit-image==0.26.0 \
	opencv-python-headless==5.0.0.93 lazy-loader==0.6
bench: $(STAMP) ## measure how fast the library is beside others (twenty minutes, needs MNIST and CIFAR-10)
	$(BIN)/robustbook data fetch mnist cifar10
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps $(PEERS)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# Packages that pip adds by itself where the platform needs them stay out of the lock file.
PLATFORM := nvidia-|cuda-|triton|pytorch-triton|intel-|mkl|tbb|pywin|win32|colorama|appnope|setuptools|pip==|wheel==
# Debian 12 has Python 3.11.2, and soupsieve 3 and later need 3.11.5.
HELD := 'soupsieve<3'
lock: ## renew requirements.lock from pyproject.toml, in an environment of its own
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch" requirements.lock.part' EXIT && \
	$(PYTHON) -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip install -e '.[dev]' $(HELD) && \
	{ echo "# Every package of the environment, exactly pinned. Made by: make lock"; \
	  echo "# No local version tags, no platform packages: pip adds those (CUDA, for one) where they belong."; \
	  "$$scratch/bin/python" -m pip freeze --exclude-editable \
	  | sed -E 's/\+[A-Za-z0-9.]+$$//' | grep -E '^[A-Za-z0-9._-]+==' | grep -Eiv '^($(PLATFORM))' \
	  | LC_ALL=C sort -f; } > requirements.lock.part && \
	mv requirements.lock.part requirements.lock && echo "requirements.lock: $$(grep -c == requirements.lock) packages"

clean: ## remove what was built (not the environment, not the results)
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis requirements.lock.part
	find lib tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last and names this folder. An interrupted installation has none, and a clone
# that was copied, moved or lost its Python has a wrong one: both start from an empty environment.
# A changed pin only updates a sound one.
ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
MAKE_VENV = $(PYTHON) -m venv --clear $(VENV)
endif

$(STAMP): pyproject.toml requirements.lock
	@command -v "$(PYTHON)" >/dev/null || \
	{ echo "make: no $(PYTHON) found; install Python 3.11 or newer, or name one: make book PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "make: $$($(PYTHON) -V) is too old, 3.11 or newer is needed; name one: make book PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "make: this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@rm -f $@
	$(MAKE_VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps -e .
	@printf '%s\n' "$(CURDIR)" > $@
