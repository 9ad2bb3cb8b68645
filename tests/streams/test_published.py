"""Published data sets, in miniature, in the layouts in which they are handed out."""

import json

import numpy as np
import pytest

from droptop import BadRequest, make_stream
from droptop.cli import main
from droptop.data import published
from droptop.data.root import Missing

from pictures import picture, pixels, save

SMALL = {"image_size": 12, "batch": 2}
ACTIONS = ["climbing", "diving", "fishing", "pole vaulting", "racing", "throwing"]
PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")


def names(source):
    """The picture of every row, by its bytes."""
    return [image.permute(1, 2, 0).numpy().tobytes() for image in source.x]


def of(home, *paths):
    return sorted(pixels(home / path).tobytes() for path in paths)


# -- BAR --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bar(tmp_path):
    about = {}
    for seed, (action, part) in enumerate((action, part) for action in ACTIONS for part in ("train", "train", "test")):
        about[f"{action}_{seed}"] = {"cls": action, "train": part == "train"}
        save(picture(seed), tmp_path / f"bar/{part}/{action}_{seed}.jpg")
    (tmp_path / "bar/metadata.json").write_text(json.dumps(about))
    return tmp_path


def test_bar(bar):
    stream = make_stream("bar", root=bar, **SMALL)
    assert (stream.spec.classes, stream.tasks) == (tuple(ACTIONS), ((0, 1), (2, 3), (4, 5)))
    assert stream.train.y.tolist() == [label for label in range(6) for _ in range(2)]
    assert np.array_equal(stream.tests["test"].x[1].permute(1, 2, 0), pixels(bar / "bar/test/diving_5.jpg"))
    assert make_stream("bar", root=bar, batch=2).spec.shape == (3, 224, 224)


def test_bar_that_is_not_whole_is_refused(bar):
    (bar / "bar/test/diving_5.jpg").unlink()
    with pytest.raises(BadRequest, match=r"test/diving_5\.jpg is missing: bar needs every image"):
        make_stream("bar", root=bar, **SMALL)
    for text in ("{", "[]", '{"a": {}}'):
        (bar / "bar/metadata.json").write_text(text)
        with pytest.raises(BadRequest, match=r"metadata\.json is damaged"):
            make_stream("bar", root=bar, **SMALL)
    (bar / "bar/metadata.json").unlink()
    with pytest.raises(BadRequest, match=r"metadata\.json: No such file"):
        make_stream("bar", root=bar, **SMALL)


# -- CelebA -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["img_align_celeba", "img_align_celeba/img_align_celeba"])
def test_celeba(tmp_path, folder):
    home = tmp_path / "celeba"
    attributes, partition = ["image_id,Blond_Hair,Male,Young"], ["image_id,partition"]
    for number in range(12):
        save(picture(number, (9, 11)), home / folder / f"{number:06}.jpg")
        attributes.append(f"{number:06}.jpg,{1 if number % 3 == 0 else -1},{-1 if number % 2 else 1},1")
        partition.append(f"{number:06}.jpg,{number // 6 * 2 if number % 6 != 5 else 1}")
    (home / "list_attr_celeba.csv").write_text("\n".join(attributes))
    (home / "list_eval_partition.csv").write_text("\n".join(partition))
    stream = make_stream("celeba", root=tmp_path, **SMALL)
    assert (stream.spec.classes, stream.tasks) == (("blond", "not blond"), ((0, 1),))
    assert (stream.train.y.tolist(), stream.tests["test"].y.tolist()) == ([0, 1, 1, 0, 1], [0, 1, 1, 0, 1])
    groups = stream.tests["test"].groups["group"]
    named = [groups.names[code] for code in groups.codes]
    assert named == ["blond male", "not blond female", "not blond male", "blond female", "not blond male"]
    (home / "list_eval_partition.csv").write_text("\n".join(partition[:-1]))
    with pytest.raises(BadRequest, match=r"list_eval_partition\.csv has no row for 000011\.jpg"):
        make_stream("celeba", root=tmp_path, **SMALL)
    (home / "list_attr_celeba.csv").write_text("\n".join(attributes).replace("Blond_Hair", "Hair"))
    with pytest.raises(BadRequest, match=r"list_attr_celeba\.csv has no column Blond_Hair"):
        make_stream("celeba", root=tmp_path, **SMALL)


# -- Spawrious --------------------------------------------------------------------------------------------------------


@pytest.fixture
def dogs(tmp_path, monkeypatch):
    """Ten images of each breed in each place, where the authors have 3168."""
    monkeypatch.setattr(published, "IMAGES", 10)
    seed = 0
    for folder in "01":
        for place in PLACES:
            for breed in published.BREEDS:
                for number in range(10):
                    seed += 1
                    save(
                        picture(seed), tmp_path / f"spawrious224/{folder}/{place}/{breed}/{place}_{breed}_{number}.png"
                    )
    return tmp_path


def test_spawrious_one_to_one(dogs):
    """97% and 87% of a breed in its place, the rest at the beach; in the test set, all in another place."""
    stream = make_stream("spawrious:o2o_hard", root=dogs, **SMALL)
    assert (stream.spec.classes, stream.tasks) == (("bulldog", "corgi", "dachshund", "labrador"), ((0, 1), (2, 3)))
    home, expected, tested = dogs / "spawrious224", [], []
    own = {"bulldog": "jungle", "dachshund": "mountain", "labrador": "snow", "corgi": "desert"}
    other = {"bulldog": "mountain", "dachshund": "snow", "labrador": "desert", "corgi": "jungle"}
    for folder, most in (("0", 9), ("1", 8)):
        for breed in own:
            expected += [f"{folder}/{own[breed]}/{breed}/{own[breed]}_{breed}_{number}.png" for number in range(most)]
            expected += [f"{folder}/beach/{breed}/beach_{breed}_{number}.png" for number in range(10 - most)]
            tested += [f"{folder}/{other[breed]}/{breed}/{other[breed]}_{breed}_{number}.png" for number in range(10)]
    assert sorted(names(stream.train)) == of(home, *expected)
    assert sorted(names(stream.tests["test"])) == of(home, *tested)
    groups = stream.tests["test"].groups["place"]
    for row, name in enumerate(sorted(tested)):
        assert stream.spec.classes[stream.tests["test"].y[row]] == name.split("/")[2]
        assert groups.names[groups.codes[row]] == name.split("/")[1]


def test_spawrious_many_to_many(dogs):
    """Two breeds share two places, and two others in the test set, both from the first folder."""
    stream = make_stream("spawrious:m2m_easy", root=dogs, **SMALL)
    own = {"bulldog": ("desert", "mountain"), "dachshund": ("mountain", "desert")}
    own |= {"labrador": ("dirt", "jungle"), "corgi": ("jungle", "dirt")}
    other = {"bulldog": ("dirt", "jungle"), "dachshund": ("jungle", "dirt")}
    other |= {"labrador": ("mountain", "desert"), "corgi": ("desert", "mountain")}
    for source, places in ((stream.train, own), (stream.tests["test"], other)):
        expected = [
            f"0/{place}/{breed}/{place}_{breed}_{number}.png"
            for breed, two in places.items()
            for place in two
            for number in range(10)
        ]
        assert sorted(names(source)) == of(dogs / "spawrious224", *expected)


# -- NICO++ -----------------------------------------------------------------------------------------------------------


def test_nico(tmp_path):
    seed = 0
    for context in published.CONTEXTS:
        for label in ("cat", "hot air balloon"):
            for number in range(5):
                seed += 1
                save(picture(seed), tmp_path / f"nico/train/{context}/{label}/{context}_{number}.jpg")
    with pytest.warns(UserWarning, match="no training image is in 1 of the groups by context: water"):
        stream = make_stream("nico:water", root=tmp_path, **SMALL)
    assert stream.tests["unseen"].groups["context"].names == ("water",)
    assert stream.spec.classes == ("cat", "hot air balloon")
    assert (len(stream.train), {name: len(test) for name, test in stream.tests.items()}) == (
        40,
        {"seen": 10, "unseen": 10},
    )
    water = [f"water/{label}/water_{number}.jpg" for label in stream.spec.classes for number in range(5)]
    assert sorted(names(stream.tests["unseen"])) == of(tmp_path / "nico/train", *water)
    everything = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jpg"))
    seen = names(stream.train) + names(stream.tests["seen"]) + names(stream.tests["unseen"])
    assert sorted(seen) == of(tmp_path, *everything)
    assert stream.tests["seen"].y.bincount().tolist() == [5, 5]


# -- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bar", "celeba", "spawrious:o2o_easy", "nico:rock"])
def test_what_is_not_there_is_said_with_where_to_get_it(tmp_path, name, capsys):
    with pytest.raises(Missing, match=f"{name} is not on this disk: looked for {tmp_path}/"):
        make_stream(name, root=tmp_path)
    assert main(["data", "check", name, "--root", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_variants_and_contexts_that_are_not_known_are_refused():
    with pytest.raises(BadRequest, match=r"Spawrious has no variant o2o_heard: .*; did you mean o2o_hard"):
        make_stream("spawrious:o2o_heard")
    with pytest.raises(BadRequest, match=r"NICO\+\+ has no context sand: there are autumn"):
        make_stream("nico:sand")
    with pytest.raises(BadRequest, match="spawrious is not the whole name: spawrious:VARIANT"):
        make_stream("spawrious")


def test_check_reads_every_image(bar, capsys):
    assert main(["data", "check", "bar", "--root", str(bar)]) == 0
    assert "training: 12 images decode (climbing 2, " in capsys.readouterr().out
    (bar / "bar/train/diving_3.jpg").write_bytes(b"no image")
    assert main(["data", "check", "bar", "--root", str(bar)]) == 2
    assert "train/diving_3.jpg does not decode" in capsys.readouterr().err
