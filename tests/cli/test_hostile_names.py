"""The real commands on data of hostile names: of classes, test sets, groups, files, folders and the run itself."""

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hostile import names, steering
from pictures import picture, save

pytestmark = pytest.mark.faults
PER_ROUND, ROUNDS = 25, 6
SMALL = ("--image-size", "12", "--batch", "2", "--width", "4", "--limit", "4", "--seeds", "1", "--memory", "8")


def write_data(place, many):
    """Four classes with eight images, of which two are for each of two test sets, in folders of such names."""
    classes, tests, groups, folder, files = many[:4], many[4:6], many[6:8], many[8], many[9:17]
    rows = []
    for label in classes:
        for place_in_class, file in enumerate(files):
            split = "train" if place_in_class < 4 else f"test-{tests[place_in_class % 2]}"
            path = f"{folder}/{classes.index(label)}-{file}.png"
            save(picture(len(rows)), place / path)
            rows.append([path, label, split, groups[place_in_class // 2 % 2]])
    with (place / "list.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["path", "label", "split", "group"], *rows])
    return place / "list.csv", place / rows[0][0]


def every_command(here, place, many):
    home = place / many[17] / many[18]
    home.mkdir(parents=True)
    table, image = write_data(home, many)
    out, name = home / many[19], f"csv:{table}"
    calls = [
        ("data", "check", name),
        ("data", "sheet", name, home / "sheet.png", "--seed", "0"),
        ("compare", "--data", name, "--debias", "droptop", *SMALL, "--log", "csv", "--out", out),
        ("resume", out),
        ("status", out),
        ("results", out, "--export", home / "rows.csv"),
        ("report", out),
        ("predict", out, image, home / many[8], "--maps", home / "maps"),
        ("predict", out, image, "--json"),
        ("export", out, "--format", "safetensors"),
        ("data", "check", f"csv:{home / many[20]}"),
        ("run", "--data", name, *SMALL, "--out", home / "other", f"--{many[21]}", many[22]),
        ("run", "--data", many[23], "--out", home / "other"),
        ("status", home / many[24]),
    ]
    for call in calls:
        done = here(*call)
        said = done.stdout + done.stderr
        wrong = call in calls[-4:]
        assert done.returncode == (2 if wrong else 0), said
        assert len(done.stderr.splitlines()) == 1 or not wrong, done.stderr
        assert not steering(said), said
        assert "Traceback" not in said
        if "--json" in call:
            assert json.loads(done.stdout)["file"] == str(image)
    assert (out / "report.html").stat().st_size > 10**5
    assert not (home / "other").exists()
    assert not steering((out / "report.html").read_text("utf-8").split("<script>")[0].replace("\t", ""))
    for path in (home / "rows.csv", *out.glob("*/seed-0/scalars.csv")):
        for cell in (cell for cells in csv.reader(io.StringIO(path.read_text("utf-8"), newline="")) for cell in cells):
            assert not steering(cell)
            if cell[:1] in ("=", "+", "-", "@", "＝"):
                float(cell)


def test_names_through_the_commands(here, tmp_path_factory, fault_counts):
    @given(names(PER_ROUND, on_disk=True))
    @settings(
        max_examples=ROUNDS,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    def through(many):
        every_command(here, tmp_path_factory.mktemp("place"), many)

    through()
    fault_counts.add("hostile names, of files that real commands read", ROUNDS * PER_ROUND)
