"""Plans for tests, made of configurations."""

from droptop.cli.run_flags import parse
from droptop.options import flatten
from droptop.runs.config import Config, config_from_options
from droptop.runs.folder import Command
from droptop.runs.plan import Plan


def plain(config: Config) -> Config:
    """Return a configuration without its debiasers."""
    kept = {
        path: value for path, value in flatten(config).items() if path.partition(".")[0] not in vars(config.members)
    }
    return config_from_options(kept | {"debias": "none"})


def plan(config: Config, command: Command = "run") -> Plan:
    """Return the plan of a run, or that of a comparison with the same without debiasing."""
    pair = {"none": plain(config)} if command == "compare" else {}
    return Plan(command, pair | {config.options.debias: config})


def parsed(*args: str) -> Config:
    """Return the configuration that a command line of `run` asks for."""
    (config,) = parse("run", [*args, "--out", "x"]).plan.arms.values()
    return config
