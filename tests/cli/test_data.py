"""`droptop data`: most of it through `main`, what a shell sees of it through the real command."""

import re
import shutil
import signal
import subprocess
import time

import pytest
from PIL import Image
from rich.console import Console

from droptop.cli import data as data_cli
from droptop.cli import main
from droptop.data.download import PACKAGES, Package
from droptop.data.imagenet9 import FOLDERS, TESTS
from droptop.report import file_progress as bars
from droptop.streams import known_names

from formats import write_cifar10
from pictures import mask_of, save, write_tree
from toys import command, droptop, environment


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree", {"train": dict.fromkeys("abcd", 8), "test": dict.fromkeys("abcd", 2)})


@pytest.fixture
def masked(tmp_path):
    return write_tree(tmp_path / "masked", {"train": {"a": 3, "b": 3}, "val": {"a": 2, "b": 2}}, masks=True)


def refused(capsys, *args):
    """What is said of a request that cannot be met, in one line."""
    assert main([*map(str, args)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    *shown, complaint = said.err.splitlines()
    assert all(re.fullmatch(r".*: [\d,]+ of [\d,]+ (images|files)", line) for line in shown)
    return complaint


# -- list -------------------------------------------------------------------------------------------------------------


def test_list_says_what_is_here_and_how_to_get_the_rest(tmp_path, monkeypatch):
    write_cifar10(tmp_path)
    write_tree(tmp_path / "tiny-in9", dict.fromkeys(("train", "val"), dict.fromkeys(FOLDERS, 1)), masks=True)
    monkeypatch.setenv("DROPTOP_DATA", str(tmp_path))
    done = droptop("data", "list")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert set(known_names()) <= set(rows)
    assert "  built in  " in rows["fashion-sticker"]
    assert f"  {tmp_path / 'cifar-10-batches-py'}  " in rows["split-cifar10"]
    assert f"  {tmp_path / 'tiny-in9'}, {len(TESTS) - 1} of {len(TESTS)} test sets  " in rows["split-tiny-imagenet9"]
    assert "  not on this disk  " in rows["split-cifar100"]
    assert "split-cifar100: `droptop data download cifar100` fetches it\n" in done.stdout
    assert "split-mnist, biased-mnist: `droptop data download mnist` fetches it\n" in done.stdout
    assert "backgrounds_challenge" in done.stdout
    assert f"looked in {tmp_path} " in done.stdout


def test_list_shows_incomplete_data(tmp_path, capsys):
    (write_cifar10(tmp_path) / "data_batch_3").unlink()
    assert main(["data", "list", "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"split-cifar10 +not whole: \S+/data_batch_3 is missing; remove the folder", printed)


@pytest.mark.parametrize("width", [60, 90, 140])
def test_list_fits_the_terminal(tmp_path, width):
    console = Console(force_terminal=True, width=width, color_system=None)
    with console.capture() as printed:
        data_cli.list_streams(["--root", str(tmp_path)], console)
    assert max(map(len, printed.get().splitlines())) <= width
    for name in known_names():
        assert f" {name} " in printed.get()


# -- check ------------------------------------------------------------------------------------------------------------


def test_check_counts_images_and_classes(tree, capsys):
    assert main(["data", "check", f"folder:{tree}"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"folder:{tree}: in order",
        "training: 32 images decode (a 8, b 8, c 8, d 8)",
        "test: 8 images decode (a 2, b 2, c 2, d 2)",
    ]
    assert said.err.splitlines() == ["training: 32 of 32 images", "test: 8 of 8 images"]
    assert main(["data", "check", "fashion"]) == 0
    assert "12,000 + 2,000 images of 10 classes" in capsys.readouterr().out


def test_check_names_what_is_damaged(tree):
    path = tree / "train/b/3.png"
    path.write_bytes(path.read_bytes()[:60])
    done = droptop("data", "check", f"folder:{tree}")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"droptop: {path} does not decode: .+", done.stderr.splitlines()[-1])


@pytest.mark.parametrize(("damaged", "shown"), [(2, ""), (20, ""), (23, ", the first 20 of them")])
def test_check_names_every_damaged_file(tree, damaged, shown, here):
    paths = [*sorted(tree.glob("train/*/*.png"))[: damaged - 1], tree / "test/d/1.png"]
    for path in paths:
        path.write_bytes(b"not an image")
    done = here("data", "check", f"folder:{tree}")
    assert (done.returncode, done.stdout) == (2, "")
    heading, *lines = done.stderr.splitlines()[2:]  # after how reading went
    assert heading == f"droptop: folder:{tree}: {damaged} files are not in order{shown}:"
    assert [line.partition(" does not decode: ")[0] for line in lines] == [f"  {path}" for path in paths[:20]]


def test_check_reads_the_data_in_the_root(tmp_path, capsys):
    folder = write_cifar10(tmp_path)
    (folder / "data_batch_2").write_bytes(b"no pickle")
    for name in ("split-cifar10", "cifar10"):
        assert main(["data", "check", name, "--root", str(tmp_path)]) == 2
        *_, heading, first, second, third, fourth, fifth, last = capsys.readouterr().err.splitlines()
        assert heading == f"droptop: {name}: 6 files are not in order:"
        assert first == f"  {folder}/data_batch_1: 'data' is 20 x 3072 instead of 10000 images x 3072 bytes"
        assert second.startswith(f"  {folder}/data_batch_2 is no CIFAR file")
        assert all(f"/data_batch_{number}: " in line for number, line in enumerate((third, fourth, fifth), 3))
        assert "/test_batch: " in last


# -- download ---------------------------------------------------------------------------------------------------------


def test_a_missing_connection_is_one_line(tmp_path, monkeypatch, capsys):
    nowhere = Package("CIFAR-10", ("http://127.0.0.1:9/",), {"a.tar.gz": "0"}, "cifar-10-batches-py", archive=True)
    monkeypatch.setitem(PACKAGES, "cifar10", nowhere)
    monkeypatch.setenv("no_proxy", "*")
    for name in ("cifar10", "split-cifar10"):
        assert main(["data", "download", name, "--root", str(tmp_path / "new")]) == 1
        assert re.fullmatch(
            r"droptop: no download of a\.tar\.gz: http://127\S+/a\.tar\.gz \(.*\)\. Get it .*\n",
            capsys.readouterr().err,
        )
    assert [*(tmp_path / "new").iterdir()] == []


def test_an_interrupted_download_keeps_its_bytes(tmp_path, monkeypatch, capsys):
    data = bytes(2 << 20)
    (tmp_path / "web").mkdir()
    (tmp_path / "web/a.gz").write_bytes(data)
    monkeypatch.setitem(
        PACKAGES,
        "mnist",
        Package("MNIST", ((tmp_path / "web").as_uri() + "/",), {"a.gz": "0"}, "MNIST/raw", archive=False),
    )

    def interrupt(self, done, total, what):
        if done > len(data) // 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(bars.Lines, "__call__", interrupt)
    monkeypatch.setattr("urllib.response.addinfourl.status", 200)  # as http answers
    assert main(["data", "download", "mnist", "--root", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "droptop: interrupted\n"
    assert [path.name for path in (tmp_path / "MNIST/raw").iterdir()] == ["a.gz.part"]


def test_a_table_is_checked_and_drawn_by_the_columns_that_are_named(tree, tmp_path, capsys):
    rows = [f"{path},{path.parent.name},{path.parts[-3]}" for path in sorted(tree.rglob("*.png"))]
    (tmp_path / "toys.csv").write_text("\n".join(["path,kind,part", *rows]))
    table = f"csv:{tmp_path / 'toys.csv'}"
    assert "name one with --label-column" in refused(capsys, "data", "check", table)
    assert main(["data", "check", table, "--label-column", "kind", "--split-column", "part"]) == 0
    said = capsys.readouterr().out
    assert "32 images decode" in said
    assert "8 images decode" in said
    sheet = tmp_path / "sheet.png"
    assert "name one with --label-column" in refused(capsys, "data", "sheet", table, sheet)
    assert main(["data", "sheet", table, str(sheet), "--label-column", "kind"]) == 0
    assert sheet.exists()
    capsys.readouterr()
    for words in (["check", f"folder:{tree}"], ["sheet", f"folder:{tree}", tmp_path / "other.png"]):
        assert "has no option label_column" in refused(capsys, "data", *words, "--label-column", "kind")


# -- variants, sheet --------------------------------------------------------------------------------------------------


def test_variants_are_written_to_folders(masked, tmp_path):
    done = droptop("data", "variants", masked, tmp_path / "out", "--names", "only_fg,mixed_rand")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"20 images in {tmp_path / 'out'}\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["mixed_rand", "only_fg"]
    shutil.rmtree(masked / "masks/train")  # test images are often all that has masks
    assert main(["data", "variants", str(masked), str(tmp_path / "val"), "--names", "only_fg"]) == 0
    assert len([*(tmp_path / "val").rglob("*.png")]) == 4
    assert not list(tmp_path.glob(".*"))


def test_variants_are_written_whole_or_not_at_all(masked, tmp_path, capsys):
    save(mask_of(1, (5, 5)), masked / "masks/val/b/1.png")
    assert "masks/val/b/1.png is 5 x 5 pixels" in refused(capsys, "data", "variants", masked, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["masked"]


def test_sheet_writes_a_png(tree, tmp_path, capsys):
    assert main(["data", "sheet", f"folder:{tree}", str(tmp_path / "sheet.png"), "--seed", "3"]) == 0
    with Image.open(tmp_path / "sheet.png") as image:
        assert image.format == "PNG"
    before = (tmp_path / "sheet.png").read_bytes()
    capsys.readouterr()
    assert "exists already" in refused(capsys, "data", "sheet", "fashion", tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes() == before


# -- What cannot be done ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("data unpack", "unknown command data unpack: there are list, check, download, variants, sheet"),
        ("data list --root nowhere", "--root takes an existing folder, not nowhere"),
        ("data list fashion", "fashion"),
        ("data check", "NAME is missing"),
        ("data check imagenet", "there is no stream imagenet; there are fashion, "),
        ("data check folder:", "folder: is not the whole name: folder:PATH"),
        ("data check split-imagenet9:blue", "there is no variant blue; there are original, only_fg"),
        ("data check split-mnist --root HERE", "MNIST is not on this disk: looked for HERE/MNIST/raw"),
        ("data check folder:HERE/nowhere", "HERE/nowhere is not an existing folder"),
        ("data check folder:HERE/file", "HERE/file is not a folder"),
        ("data check folder:HERE/one", "HERE/one/train holds one class, a"),
        ("data download", "NAME is missing"),
        ("data download fashion", "data download takes one of cifar10, cifar100, mnist, split-cifar10"),
        ("data download mnist --root HERE/file", "--root takes a folder, not HERE/file"),
        ("data variants HERE/tree", "OUT is missing"),
        ("data variants HERE/nowhere HERE/out", "HERE/nowhere is not an existing folder"),
        ("data variants HERE/tree HERE/out", "HERE/tree holds no masks: they belong in HERE/tree/masks/test/CLASS/"),
        ("data variants HERE/tree HERE/one", "HERE/one holds something already"),
        ("data variants HERE/tree HERE/out --names blue", "blue is no variant that is made from masks: only_fg"),
        ("data sheet fashion HERE/sheet.jpg", "a picture named OUT.png, not HERE/sheet.jpg"),
        ("data sheet fashion HERE/nowhere/sheet.png", "HERE/nowhere is not an existing folder"),
        ("data sheet fashion HERE/sheet.png --seed -1", "--seed takes a number from 0, not -1"),
        (
            "data sheet split-cifar10 HERE/sheet.png --root HERE",
            "`droptop data download cifar10 --root HERE` fetches it",
        ),
        ("run --data folder: --out HERE/out", "folder:PATH"),
        ("run --data split-imagenet9:blue --out HERE/out", "there is no variant blue"),
        ("run --data folder:HERE/one --out HERE/out", "HERE/one/train holds one class"),
        ("run --data folder:HERE/file --out HERE/out", "HERE/file is not a folder"),
        ("run --data folder:HERE/bad --out HERE/out", "HERE/bad/train/b/1.png does not decode"),
        ("run --data split-cifar10 --root HERE --out HERE/out", "CIFAR-10 is not on this disk"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(args, names, tree, tmp_path, capsys):
    write_tree(tmp_path / "one", {"train": {"a": 2}, "test": {"a": 2}})
    write_tree(tmp_path / "bad", {"train": {"a": 2, "b": 2}, "test": {"a": 1, "b": 1}})
    (tmp_path / "bad/train/b/1.png").write_text("")
    (tmp_path / "file").write_text("mine")
    before = sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts)
    complaint = refused(capsys, *args.replace("HERE", str(tmp_path)).split())
    assert complaint.startswith("droptop: ")
    assert names.replace("HERE", str(tmp_path)) in complaint
    assert sorted(path for path in tmp_path.rglob("*") if "cache" not in path.relative_to(tmp_path).parts) == before


def test_a_cache_that_cannot_be_written_is_refused(tree, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "file"))
    said = refused(capsys, "run", "--data", f"folder:{tree}", "--batch", 2, "--out", tmp_path / "out")
    assert "file: File exists; the decoded images of" in said
    assert "are kept there: name a folder that can be written with DROPTOP_CACHE" in said
    assert "make room" not in said  # there is enough


@pytest.mark.parametrize("name", ["list", "check", "download", "variants", "sheet"])
def test_help_shows_every_command(name, capsys):
    assert main(["data", "--help"]) == 0
    assert f"\n  {name} " in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["data", name, "--help"])
    assert end.value.code == 0
    assert f"usage: droptop data {name}" in capsys.readouterr().out


def test_families_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help-all"])
    printed = " ".join(capsys.readouterr().out.split())
    assert all(name in printed for name in known_names())


# -- A stream that is decoded first -----------------------------------------------------------------------------------


def test_a_run_decodes_once_and_says_so(tree, tmp_path, cache_folder):
    """In the process that is asked, before those of the seeds begin."""
    done = droptop(
        "run",
        "--data",
        f"folder:{tree}",
        "--image-size",
        "16",
        "--batch",
        "4",
        "--width",
        "4",
        "--stem",
        "3x3",
        "--debias",
        "none",
        "--seeds",
        "1",
        "--out",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"{tree}, training: 32 of 32 images", f"{tree}, test: 8 of 8 images"]
    made = [*cache_folder.glob("*.images")]
    assert len(made) == 2
    assert max(path.stat().st_mtime for path in made) < (tmp_path / "out/config.toml").stat().st_mtime


@pytest.mark.parametrize("args", ["check split-tiny-imagenet9 --root ROOT", "variants ROOT/tiny-in9 ROOT/out"])
def test_an_interrupt_leaves_nothing_half_done(args, tmp_path):
    parts = {"train": dict.fromkeys(FOLDERS, 60), "val": dict.fromkeys(FOLDERS, 1)}
    write_tree(tmp_path / "tiny-in9", parts, masks=True, size=(96, 96))
    before = sorted(path.name for path in tmp_path.iterdir())
    process = subprocess.Popen(
        command("data", *args.replace("ROOT", str(tmp_path)).split()),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert " of " in process.stderr.readline()  # it has begun
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "droptop: interrupted"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
