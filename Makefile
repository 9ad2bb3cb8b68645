# make demo      does debiasing help on a stream with a shortcut? About three minutes on two cores, no download of data.
# make test      the tests, each with one thread; one more at a time than there are cores, since some only wait.
# make check     lint, format, types, the import contracts, and whether what scripts write is what they would write now.
# make evidence  renders the tables of the evidence from their data.
# make pages     writes what docs/ and typed_options.py say of options, functions and examples.
# make coverage  which lines and branches the tests reach: a table, and build/coverage.xml. Slower than make test.
# make mutants   breaks the code in one place at a time, to see a test fail; hours. ARGS='--only memory --sample 20' is a look.
# make docs      the documentation, with warnings as errors, into build/site; and every code block in it is run.
# make wheel     a wheel into build/wheel, tried in an empty environment.

PYTHON ?= python3
DEMO := runs/demo

.PHONY: demo test coverage mutants check evidence pages docs wheel clean

demo: .venv/installed
	@if [ -e $(DEMO)/config.toml ]; then .venv/bin/droptop resume $(DEMO); \
	else .venv/bin/droptop compare --data fashion-sticker --method er --debias droptop --seeds 5 --out $(DEMO); fi
	@echo 'droptop is .venv/bin/droptop here; `source .venv/bin/activate` puts it on the path'

test: .venv/installed
	.venv/bin/python -m pytest -n $$(($$(nproc) + 1)) --dist worksteal

coverage: .venv/installed
	.venv/bin/python -m pytest -n $$(($$(nproc) + 1)) --dist worksteal --cov=droptop --cov-report=term --cov-report=xml

mutants: .venv/installed
	nice .venv/bin/python scripts/mutants.py $(ARGS)

check: .venv/installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check --quiet .
	.venv/bin/lint-imports
	.venv/bin/mypy
	.venv/bin/mypy tests/typed_calls.py
	.venv/bin/python scripts/evidence.py --check
	.venv/bin/python scripts/typed_options.py --check
	.venv/bin/python scripts/pages.py --check

evidence: .venv/installed
	.venv/bin/python scripts/evidence.py
	.venv/bin/python scripts/pages.py

pages: .venv/installed
	.venv/bin/python scripts/typed_options.py
	.venv/bin/python scripts/pages.py

docs: .venv/documented
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict
	.venv/bin/python -m pytest tests/test_docs.py -m docs

wheel: .venv/installed
	rm -rf build/wheel build/empty
	.venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build/wheel/*.whl
	cd build/empty && bin/droptop run --data fashion-sticker --seeds 1 --limit 64 --out first
	rm -rf build/empty

.venv/documented: .venv/installed
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("droptop needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv build src/*.egg-info
