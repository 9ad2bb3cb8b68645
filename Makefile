# make demo   does debiasing help on a stream with a shortcut? Two to three minutes on two cores, no download of data.
# make test   the tests, each with one thread; one more at a time than there are cores, since some only wait.
# make check  lint and types.

PYTHON ?= python3
DEMO := runs/demo

.PHONY: demo test check clean

demo: .venv/installed
	@if [ -e $(DEMO)/config.toml ]; then .venv/bin/droptop resume $(DEMO); \
	else .venv/bin/droptop compare --data fashion-sticker --method er --debias droptop --seeds 4 --out $(DEMO); fi

test: .venv/installed
	.venv/bin/python -m pytest -n $$(($$(nproc) + 1)) --dist worksteal

check: .venv/installed
	.venv/bin/ruff check .
	.venv/bin/mypy

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("droptop needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv build src/*.egg-info
