"""What is asked of a safetensors file before the library reads it; for the rest, it trusts nothing in a file itself."""

from pathlib import Path

from safetensors import SafetensorError

from droptop.system.plain_files import open_to_read

LONGEST_HEADER = 1 << 22  # bytes; a large ViT's has 40,000. The library takes 100 MB: a minute, and 1.4 GB of memory


def check_header(file: Path | bytes) -> None:
    """Raise SafetensorError for a file, or the bytes of one, whose header is longer than that of any net."""
    if isinstance(file, Path):
        with open_to_read(file) as opened:
            start = opened.read(8)
    else:
        start = file[:8]
    if (length := int.from_bytes(start, "little")) > LONGEST_HEADER:
        raise SafetensorError(f"its header has {length:,} bytes, or it is no safetensors file")
