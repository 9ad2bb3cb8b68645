"""Mutation testing: break the code in one place at a time, and see whether a test fails.

    make mutants                                        everything: a night on one core; it goes on where it was stopped
    make mutants ARGS='--only memory --sample 20'       20 mutants of each file whose path has "memory" in it
    make mutants ARGS='--by-hand'                       the wrong versions that a person wrote
    make mutants ARGS='--report'                        the scores so far, and the survivors

`mutants.toml` beside this file says which tests belong to a file, holds the mutants written by hand (some with tests of
their own), and lists survivors that no test can kill, with the reason. A mutant that the tests of its file let live is
tried on `tests/oracles`: the table has the score without them and with them. Results are kept in build/mutants; a
mutant that was killed is not tried again before its file changes, a survivor is once the tests change.

Why not mutmut or cosmic-ray: mutmut 3.8 runs these tests well (it forks, as this does), but leaves alone whatever is
decorated, and here `torch.no_grad` and properties are half the arithmetic; most of its survivors take away a `device=`,
which no test on a CPU can see; it has no place for mutants by hand, nor for reasons. cosmic-ray starts Python for each
mutant: importing torch then takes longer than the tests.
"""

import argparse
import ast
import compileall
import copy
import fnmatch
import hashlib
import importlib
import json
import math
import os
import random
import resource
import shlex
import shutil
import signal
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/droptop")
FOLDER = ROOT / "build" / "mutants"
PLAN = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())
# Loaded once, before each child forks: what takes long to import, and nothing of droptop's.
HEAVY = ("torch", "torch.func", "numpy", "scipy.stats", "scipy.special", "pytest", "matplotlib", "tyro")
HEAVY += ("rich.console", "safetensors.torch", "filelock", "PIL.Image", "tomli_w", "platformdirs")


class Mutant(NamedTuple):
    """Name a mutant in words that outlive a change elsewhere in its file, and hold the whole text of that file."""

    source: str  # below src/droptop
    name: str
    line: int
    text: str
    tests: tuple[str, ...] = ()  # in place of its file's, of a mutant by hand


# -- Breaking code -----------------------------------------------------------------------------------------------------

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
WORDS = {"max": "min", "amax": "amin", "any": "all", "mean": "sum", "sum": "mean", "floor": "ceil", "zeros": "ones"}
WORDS |= {"zeros_like": "ones_like", "maximum": "minimum"}
WORDS |= {new: old for old, new in WORDS.items() if new not in WORDS}


def broken(node: ast.AST) -> Iterator[ast.AST | None]:
    """Give wrong versions of a node; None drops a statement."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in COMPARISONS[type(operator)]:
                yield changed(node, ops=[other()])
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATORS:
            yield changed(node, op=OPERATORS[type(node.op)]())
        case ast.BoolOp():
            yield changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp():  # a minus, a not, a ~
            yield node.operand
        case ast.IfExp():
            yield changed(node, body=node.orelse, orelse=node.body)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.Subscript(slice=ast.Slice()):
            yield node.value
        case ast.Attribute(attr=word) if word in WORDS:
            yield changed(node, attr=WORDS[word])
        case ast.Call():
            yield from broken_calls(node)
    match node:
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() | ast.BoolOp()):
            yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield None


def broken_calls(call: ast.Call) -> Iterator[ast.AST]:
    """Swap the last two arguments, leave out a keyword, or leave out the method: `x` for `x.detach()`."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if len(call.args) >= 2 and not starred and not is_call_of(call, "max", "min", "maximum", "minimum"):
        yield changed(call, args=[*call.args[:-2], call.args[-1], call.args[-2]])
    for keyword in call.keywords:
        if keyword.arg not in (None, "device", "dtype", "strict", "stacklevel"):  # which a CPU does not show
            yield changed(call, keywords=[other for other in call.keywords if other is not keyword])
    if isinstance(call.func, ast.Attribute) and len(call.args) < 2 and not is_module(call.func.value):
        yield call.func.value


def is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in (
        "torch",
        "F",
        "nn",
        "np",
        "math",
        "learner_state",
        "super",
        "self",
    )


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class Place(NamedTuple):
    """Say where a node hangs in the tree."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    function: str

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def places(parent: ast.AST, function: str = "") -> Iterator[Place]:
    """Walk the code, but for types, messages, defaults of options and docstrings, which no test ought to see."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params") or is_option(parent, function):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import):
                continue
            if is_call_of(parent, "require", "warn") and (field, index) != ("args", 0):
                continue
            inside = isinstance(node, ast.FunctionDef | ast.ClassDef)
            below = f"{function}.{node.name}".strip(".") if inside else function
            yield Place(parent, field, index, node, below)
            yield from places(node, below)


def is_option(node: ast.AST, function: str) -> bool:
    """Return whether this is a field of a configuration, or another constant of a class or module."""
    return isinstance(node, ast.AnnAssign) and function.rpartition(".")[2][:1].isupper()


def is_call_of(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a file."""
    tree = ast.parse((ROOT / SOURCE / source).read_text())
    found, names = [], dict[str, int]()
    for place in list(places(tree)):
        for other in broken(place.node):
            small = not isinstance(place.node, ast.stmt) and isinstance(
                place.parent, ast.expr | ast.keyword | ast.Slice
            )
            shown = place.parent if small else place.node
            before = headline(shown)
            place.put(ast.Pass() if other is None else other)
            after = headline(place.parent if small else other) if other is not None else "(dropped)"
            text = ast.unparse(ast.fix_missing_locations(tree))
            place.put(place.node)
            name = f"{place.function or 'module'}: {before} -> {after}"
            names[name] = names.get(name, 0) + 1
            name += f" ({names[name]})" if names[name] > 1 else ""
            if compiles(text):
                found.append(Mutant(source, name, getattr(place.node, "lineno", 0), text))
    return found


def headline(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def by_hand() -> list[Mutant]:
    """Return the mutants that a person wrote; stop if one of them no longer fits its file."""
    made = []
    for entry in PLAN["by_hand"]:
        text = (ROOT / SOURCE / entry["source"]).read_text()
        if text.count(entry["old"]) != 1:
            sys.exit(f"mutants.toml: {entry['name']}: {entry['source']} must hold this once:\n{entry['old']}")
        line = text[: text.index(entry["old"])].count("\n") + 1
        name = f"by hand: {entry['name']}"
        new = text.replace(entry["old"], entry["new"])
        made.append(Mutant(entry["source"], name, line, new, tuple(entry.get("tests", ()))))
    return made


# -- Trying them -------------------------------------------------------------------------------------------------------


class Workshop:
    """Hold a copy of the project, in which one file at a time is broken."""

    def __init__(self) -> None:
        self.copy = FOLDER / "copy"
        shutil.rmtree(self.copy, ignore_errors=True)
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, self.copy / part, ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", self.copy)
        compileall.compile_dir(self.copy / "src", quiet=2)
        for name in HEAVY:
            importlib.import_module(name)
        self.seconds: dict[str, float] = {}  # of the processor, that the tests take where nothing is broken

    def outcome(self, mutant: Mutant, tests: list[str]) -> str:
        """Return "killed", "timeout" or "survived"; tests run whole first, when a mutant first comes to them."""
        path = self.copy / SOURCE / mutant.source
        for line in tests:
            if line not in self.seconds:
                code, self.seconds[line] = self.run(line, limit=900)
                if code != 0:
                    sys.exit(f"{line} fails before anything is broken: see {FOLDER}/pytest.log")
            whole = path.read_text()
            path.write_text(mutant.text)
            later = time.time() + 100
            os.utime(path, (later, later))  # so that Python does not take the bytecode of before
            try:
                code, _ = self.run(line, limit=30 + 5 * self.seconds[line])
            finally:
                path.write_text(whole)
            if code != 0:
                return "timeout" if code is None else "killed"
        return "survived"

    def run(self, line: str, limit: float) -> tuple[int | None, float]:
        """Run tests in a child until one fails; return its exit code, None if it took too long, and its seconds.

        These are of the processor: on a busy machine tests take longer, and that kills no mutant. One that waits for
        ever is stopped after ten times as long by the clock.
        """
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), resource.RLIM_INFINITY))
            self.work(line)
        end = time.monotonic() + 10 * limit
        while time.monotonic() < end:
            done, status, usage = os.wait4(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return (None if code == -signal.SIGXCPU else code), usage.ru_utime + usage.ru_stime
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None, 10 * limit

    def work(self, line: str) -> None:
        """Be the child: run pytest here, in the copy, and end."""
        os.setpgid(0, 0)
        said = os.open(FOLDER / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir(self.copy)
        os.environ |= {"PYTHONPATH": str(self.copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        sys.path[:0] = [str(self.copy / "src"), str(self.copy / "tests")]
        sys.dont_write_bytecode = True
        import pytest

        code = 3
        try:
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *shlex.split(line)]))
        except BaseException:  # whatever it is, this process must not go on as its parent does
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def plan_of(mutant: Mutant) -> dict[str, Any]:
    """Return the tests of a mutant, and the oracles: its own, else those of the first entry that fits its file."""
    if mutant.tests:
        return {"tests": mutant.tests, "oracles": ()}
    return next(entry for entry in PLAN["module"] if fnmatch.fnmatch(mutant.source, entry["source"]))


def digest(*paths: str) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        here = ROOT / path
        for file in sorted(here.rglob("*.py")) if here.is_dir() else [here]:
            total.update(file.read_bytes())
    return total.hexdigest()[:12]


def known() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the latest results by file and mutant."""
    kept = FOLDER / "results.jsonl"
    results = map(json.loads, kept.read_text().splitlines()) if kept.exists() else []
    return {(result["source"], result["mutant"]): result for result in results}


def tried(mutant: Mutant, workshop: Workshop, stages: list[str]) -> dict[str, Any]:
    """Try a mutant on the tests of its file and, if it lives, on the oracles."""
    entry, start, outcome = plan_of(mutant), time.monotonic(), "survived"
    for stage in stages:
        if outcome == "survived":
            outcome, by = workshop.outcome(mutant, entry[stage]), stage
    return {
        "source": mutant.source,
        "mutant": mutant.name,
        "line": mutant.line,
        "outcome": outcome if outcome == "survived" else f"{outcome} by {by}",
        "seconds": round(time.monotonic() - start, 1),
        **circumstances(mutant),
    }


def circumstances(mutant: Mutant) -> dict[str, str]:
    """Return what a result holds for: the file, and for survivors the tests."""
    entry = plan_of(mutant)
    words = [word for line in (*entry["tests"], *entry["oracles"]) for word in shlex.split(line)]
    paths = {word for word in words if word.startswith("tests/") and (ROOT / word).exists()}  # no patterns
    return {"file": digest(str(SOURCE / mutant.source)), "by": digest(*paths)}


def still_holds(result: dict[str, Any] | None, mutant: Mutant) -> bool:
    now = circumstances(mutant)
    return (
        result is not None
        and result["file"] == now["file"]
        and (result["outcome"] != "survived" or result["by"] == now["by"])
    )


# -- Saying what came of it --------------------------------------------------------------------------------------------


def report(results: list[dict[str, Any]]) -> None:
    """Print the scores per file without the oracles and with them, and the survivors that no reason excuses."""
    excused = {(entry["source"], entry["mutant"]) for entry in PLAN.get("equivalent", [])}
    survivors = []
    print(f"{'file':28}{'mutants':>9}{'equivalent':>12}{'killed by its tests':>21}{'with tests/oracles':>20}")
    by_file: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        by_file.setdefault(result["source"], []).append(result)
    for source, some in [*sorted(by_file.items()), ("all", results)]:
        real = [r for r in some if (r["source"], r["mutant"]) not in excused or r["outcome"] != "survived"]
        before = sum(r["outcome"].endswith("tests") for r in real)
        after = sum(r["outcome"] != "survived" for r in real)
        share = [f"{count} ({100 * count / max(1, len(real)):.0f}%)" for count in (before, after)]
        print(f"{source:28}{len(some):9}{len(some) - len(real):12}{share[0]:>21}{share[1]:>20}")
        survivors += [r for r in real if r["outcome"] == "survived" and source != "all"]
    for result in survivors:
        print(f"survived: {SOURCE}/{result['source']}:{result['line']}: {result['mutant']}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Break the code in one place at a time, and see whether a test fails.")
    parser.add_argument("--only", default="", help="a part of the paths of the files to break")
    parser.add_argument("--sample", type=int, help="mutants per file, drawn at random, the same each time")
    parser.add_argument("--by-hand", action="store_true", help="only the mutants that a person wrote")
    parser.add_argument("--quick", action="store_true", help="try them on the oracles alone, and keep no result")
    parser.add_argument("--report", action="store_true", help="try nothing, say what is known")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = sorted({
        str(path.relative_to(ROOT / SOURCE))
        for entry in PLAN["module"]
        for path in (ROOT / SOURCE).glob(entry["source"])
        if path.name != "__init__.py"
    })  # fmt: skip
    chosen = [mutant for mutant in by_hand() if asked.only in mutant.source and asked.sample is None]
    for source in [] if asked.by_hand else [source for source in files if asked.only in source]:
        every = mutants_of(source)
        count = len(every) if asked.sample is None else min(asked.sample, len(every))
        chosen += random.Random(source).sample(every, count)
    random.Random(0).shuffle(chosen)  # a run that is stopped has tried some of every file
    results = known()
    if not asked.report:
        open_ones = [m for m in chosen if not still_holds(results.get((m.source, m.name)), m)]
        print(f"{len(chosen)} mutants, {len(open_ones)} to try")
        workshop = Workshop()
        with Path(os.devnull if asked.quick else FOLDER / "results.jsonl").open("a") as kept:
            for number, mutant in enumerate(open_ones, 1):
                result = tried(mutant, workshop, ["oracles"] if asked.quick else ["tests", "oracles"])
                results[mutant.source, mutant.name] = result
                kept.write(json.dumps(result) + "\n")
                kept.flush()
                print(f"{number}/{len(open_ones)} {result['outcome']}: {mutant.source}:{mutant.line}: {mutant.name}")
    report([results[m.source, m.name] for m in chosen if (m.source, m.name) in results])


if __name__ == "__main__":
    main()
