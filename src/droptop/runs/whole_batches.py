"""What batches that are whole leave out of a task, and how small a batch would have to be to take it in."""

from collections.abc import Sequence

from droptop.streams import Stream

WORTH_SAYING = 0.05  # of a task's samples
FEWEST_STEPS = 5  # of a task, with the batch that is suggested


def left_out_note(stream: Stream) -> list[str]:
    """Return a line on the task whose whole batches leave out the largest share of its samples; [] for a small one."""
    sizes, batch = [len(rows) for rows in stream.order], stream.config.batch
    share, left, size = max(
        (stream.left_out(task) / size, stream.left_out(task), size) for task, size in enumerate(sizes)
    )
    if share <= WORTH_SAYING:
        return []
    where = "per task" if len(set(sizes)) == 1 else "of a task"
    ways = ([f"--batch {smaller}"] if (smaller := fitting_batch(sizes, batch)) else []) + ["--no-drop-last"]
    return [
        f"{stream.name}: {left:,} of {size:,} images {where} are left out by batches of {batch}; all but a few are "
        f"learned from with {' or '.join(ways)}"
    ]


def fitting_batch(sizes: Sequence[int], batch: int) -> int | None:
    """Return the largest smaller batch with which every task has some steps and leaves out little; None below 2."""
    for smaller in range(min(batch - 1, min(sizes) // FEWEST_STEPS), 1, -1):
        if all(size % smaller <= WORTH_SAYING * size for size in sizes):
            return smaller
    return None
