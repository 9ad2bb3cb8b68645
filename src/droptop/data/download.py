"""Downloads of data sets that have a stable public address, into the layout that the streams read.

A file grows as NAME.part and gets its name once its MD5 is right, so a file NAME is always whole. A broken download
continues where it broke, at the next mirror if there is one; from a server without ranges it starts over. An archive is
unpacked beside its place, then renamed. No run needs this module: files may also be put in place by hand.
"""

import hashlib
import shutil
import ssl
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from droptop.data.root import FileProgress, data_root
from droptop.errors import BadRequest, DownloadFailed

TIMEOUT = 30  # seconds without a byte
ATTEMPTS = 3  # at each address
CHUNK = 1 << 18


@dataclass(frozen=True)
class Package:
    """Say where the files of a data set are on the web, and where they go."""

    title: str
    addresses: tuple[str, ...]  # folders on the web, each with all files
    files: dict[str, str]  # name to MD5
    folder: str  # below the root: where files go, or what an archive unpacks to
    archive: bool


TORONTO = "https://www.cs.toronto.edu/~kriz/"
PACKAGES = {
    "cifar10": Package(
        "CIFAR-10",
        (TORONTO,),
        {"cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a"},
        "cifar-10-batches-py",
        archive=True,
    ),
    "cifar100": Package(
        "CIFAR-100",
        (TORONTO,),
        {"cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85"},
        "cifar-100-python",
        archive=True,
    ),
    "mnist": Package(
        "MNIST",
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        "MNIST/raw",
        archive=False,
    ),
}


def download(name: str, root: Path | None, progress: FileProgress) -> str:
    """Download a data set by name, unless it is there, and return a line that says where it is."""
    if name not in PACKAGES:
        raise BadRequest(f"data download takes one of {', '.join(PACKAGES)}, not {name}")
    return bring(PACKAGES[name], data_root(root), progress)


def bring(package: Package, root: Path, progress: FileProgress) -> str:
    """Download and unpack what is missing of a package, and return a line that says where it is."""
    folder = root / package.folder
    if package.archive and folder.exists():
        return f"{package.title} is already in {folder}; remove that to download it again"
    into = root if package.archive else folder
    try:
        into.mkdir(parents=True, exist_ok=True)
        for file, md5 in package.files.items():
            if not (into / file.removesuffix(".gz")).is_file():  # MNIST's files may lie there decompressed
                fetch([base + file for base in package.addresses], into / file, md5, progress)
            if package.archive:
                unpack(into / file, folder)
    except OSError as error:
        raise DownloadFailed(f"{error.filename or into}: {error.strerror or error}") from None
    return f"{package.title} is in {folder}"


# -- One file ---------------------------------------------------------------------------------------------------------


def fetch(addresses: Sequence[str], path: Path, md5: str, progress: FileProgress) -> None:
    """Download a file from the first address that has it, unless it is there; refuse a file with another MD5."""
    if path.exists():
        if checksum(path) != md5:
            raise BadRequest(f"{path} is not the file it should be (its MD5 is not {md5}): remove it and try again")
        return
    part = path.with_name(path.name + ".part")
    problems: dict[str, str] = {}
    hopeless = set()  # addresses that need no further attempt
    for address in [*addresses] * ATTEMPTS:
        if address in hopeless:
            continue
        begun = part.exists()
        try:
            transfer(address, part, progress)
        except HTTPError as error:
            problems[address] = f"HTTP {error.code} {error.reason}"
            if error.code < 500:
                hopeless.add(address)
        except (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            problems[address] = str(getattr(error, "reason", error)) or type(error).__name__
        else:
            if checksum(part) == md5:
                part.replace(path)
                return
            part.unlink()
            problems[address] = f"sends another file: its MD5 is not {md5}"
            if not begun:  # else the first part may have been wrong, and a new download may be right
                hopeless.add(address)
    tried = "; ".join(f"{address} ({problem})" for address, problem in problems.items())
    raise DownloadFailed(
        f"no download of {path.name}: {tried}. Get it from there by other means, put it at "
        f"{path.absolute()} and give this command again"
    )


def transfer(address: str, part: Path, progress: FileProgress) -> None:
    """Download a file, or what is missing of it, to `part`; raise ConnectionError if the connection ends too early."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "droptop", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urlopen(Request(address, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        if error.code == 416 and have:
            return  # nothing is missing; the checksum will tell whether it is the right file
        raise
    with response:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if response.status == 206 and not goes_on:
            raise ConnectionError("another range than the one asked for")
        done = have if goes_on else 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdigit() else 0
        with part.open("ab" if goes_on else "wb") as file:
            progress(done, total, part.stem)
            while chunk := response.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total, part.stem)
    if done < total:
        raise ConnectionError(f"the connection broke after {done:,} of {total:,} bytes")


def checksum(path: Path) -> str:
    """Return the MD5 of a file, which its authors publish."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of one folder, so that either the whole folder is there or nothing of it."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(beside, filter="data")
        (beside / folder.name).rename(folder)
    except (tarfile.TarError, EOFError) as error:
        raise DownloadFailed(f"{archive}: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
