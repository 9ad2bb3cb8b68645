"""What `attach` is asked for: debiasers by name, and their settings as flat options (`gamma=5.0, period=3`)."""

from typing import Any

from droptop.debias import Chosen, DropTopConfig, members_of
from droptop.errors import BadRequest, meant, require
from droptop.options import ending_in, flatten, replaced
from droptop.recipes import recipe_of


def chosen(debias: str, options: dict[str, Any]) -> list[Chosen]:
    """Return the debiasers and their settings, as `Family` takes them.

    Raise BadRequest for what cannot work in a model and a loop of one's own.
    """
    recipe, kinds = recipe_of(debias), members_of(debias)
    require(bool(kinds), "debias", "a debiaser, since all else is up to your loop", debias)
    for name, kind in kinds.items():
        require(not kind.needs_logits, "debias", f"{name} in a net that droptop builds; attach takes others", debias)
    usual = {name: kind.config_type() for name, kind in kinds.items()}
    paths = [f"{name}.{path}" for name, settings in usual.items() for path in flatten(settings)]
    if foreign := [name for name in (*recipe.options, *recipe.factors) if not ending_in(name, paths)]:
        raise BadRequest(
            f"attach takes no {debias}, which sets {', '.join(foreign)} of our learners: "
            f"take debias={'+'.join(kinds)!r}, and do that in your loop"
        )
    values = {path_of(name, paths): value for name, value in (recipe.options | options).items()}
    made = []
    for name, kind in kinds.items():
        own = {path.removeprefix(name + "."): value for path, value in values.items() if path.startswith(name + ".")}
        config = replaced(usual[name], own)
        if isinstance(config, DropTopConfig):
            check_alone(config)
        made.append(Chosen(kind, config))
    return made


def check_alone(config: DropTopConfig) -> None:
    """Raise BadRequest for settings of DropTop that take a learner: one knows of tasks, memory rows and two models."""
    config.check_kappa_0(DropTopConfig())
    require(not config.intensity.reference, "reference", "a learner, which can have two models", "attach")
    require(config.intensity.p_counter == "global", "p_counter", "global where nobody knows of tasks", "task")
    require(config.mask_rows == "all", "mask_rows", "all where nobody knows the memory's rows", config.mask_rows)
    require(
        config.memory_attention == "fresh",
        "memory_attention",
        "fresh where nobody knows the memory's rows",
        config.memory_attention,
    )


def path_of(name: str, paths: list[str]) -> str:
    """Return the path of the one option that a name is the end of; raise BadRequest if there is none, or several."""
    found = ending_in(name, paths)
    if len(found) > 1:
        raise BadRequest(f"option {name} is that of several: say {' or '.join(map(repr, found))}")
    if not found:
        known = [path.rpartition(".")[2] for path in paths]
        raise BadRequest(f"attach has no option {name}{meant(name, known)}")
    return found[0]
