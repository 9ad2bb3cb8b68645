"""Streams of data sets in Python, beside what these give by themselves."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

import droptop
from droptop import BadRequest, Samples, stream_from
from droptop.data.image_store import StoredImages

from pictures import picture, pixels, save
from toys import feed

SMALL = {"batch": 2, "image_size": 12}


class Listed(Dataset):
    """Items of a list; counts what is read."""

    def __init__(self, items, **about):
        self.items, self.read = items, []
        vars(self).update(about)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        self.read.append(row)
        return self.items[row]


def pictures(labels, size=(12, 12)):
    return [(picture(seed, size), label) for seed, label in enumerate(labels)]


def as_bytes(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


# -- Data sets --------------------------------------------------------------------------------------------------------


def test_pictures_are_read_when_they_are_asked_for():
    labels = [number % 4 for number in range(16)]
    train, test = Listed(pictures(labels), targets=labels), Listed(pictures([3, 2, 1, 0]), targets=[3, 2, 1, 0])
    stream = stream_from(train, test, **SMALL)
    assert (stream.spec.classes, stream.spec.shape, stream.spec.dtype) == (tuple("0123"), (3, 12, 12), torch.uint8)
    assert stream.tasks == ((0, 1), (2, 3))
    assert set(train.read) <= {0}  # to see what an image is like
    train.read.clear()
    seen = []
    for x, y, task, shortcut in stream:
        assert shortcut is None
        for image, label in zip(x, y):
            (row,) = [row for row, (own, _) in enumerate(train.items) if torch.equal(as_bytes(own), image)]
            assert (label, label // 2) == (labels[row], task)
            seen.append(row)
    assert sorted(seen) == sorted(train.read) == list(range(16))
    assert stream.tests["test"][torch.tensor([2, 0])].y.tolist() == [1, 3]


def test_a_learner_learns_from_it():
    stream = stream_from(Listed(pictures([number % 4 for number in range(32)])), tasks=2, **SMALL)
    learner = droptop.make_learner("er", stream, width=4, stem="3x3", memory=8)
    feed(learner, [(batch.x, batch.y, batch.task) for batch in stream])
    assert 0 <= droptop.accuracy(droptop.evaluate(learner, stream.tests["test"])) <= 100


def test_pictures_of_any_mode_and_size_become_one_shape():
    image = picture(1, (12, 12))
    modes = [image, image.convert("RGBA"), image.convert("L"), image.convert("CMYK"), picture(2, (40, 13))]
    stream = stream_from(
        Listed([(image, row % 2) for row, image in enumerate(modes)]), Listed(pictures([0, 1])), **SMALL
    )
    x = stream.train[torch.arange(5)].x
    assert x.shape == (5, 3, 12, 12)
    assert torch.equal(x[0], x[1])
    assert torch.equal(x[2], as_bytes(image.convert("L").convert("RGB")))


@pytest.mark.parametrize("array", [False, True], ids=["tensor", "array"])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_images_as_tensors_and_arrays(array, channels):
    """Arrays have their channels last, and tensors first; images in grey may have none."""
    images = torch.rand(6, *([channels] if channels else []), 8, 9)
    items = [
        (image.movedim(0, -1).numpy() if array and channels else image.numpy() if array else image) for image in images
    ]
    stream = stream_from(
        Listed([(image, row % 2) for row, image in enumerate(items)]), Listed(list(zip(items, [0, 1]))), batch=2
    )
    assert (stream.spec.shape, stream.spec.dtype) == ((channels or 1, 8, 9), torch.float32)
    assert torch.equal(stream.train[torch.arange(6)].x, images if channels else images[:, None])
    assert (stream.spec.mean, stream.spec.std) == (0.0, 1.0)


def test_parts_of_data_sets_have_the_labels_of_their_rows():
    labels = list("abcabcab")
    first, second = Listed(pictures(labels), targets=labels), Listed(pictures(["c", "c"]))
    stream = stream_from(
        ConcatDataset([Subset(first, [7, 0, 2, 1]), second]),
        Subset(first, [5, 4, 3]),
        **SMALL,
        tasks=3,
        drop_last=False,
    )
    assert stream.spec.classes == ("a", "b", "c")
    assert stream.train.y.tolist() == [1, 0, 2, 1, 2, 2]
    assert stream.tests["test"].y.tolist() == [2, 1, 0]
    assert torch.equal(stream.train[torch.tensor([0])].x[0], as_bytes(first.items[7][0]))


def test_labels_that_a_transform_changes_are_those_of_the_items():
    """`targets` are then not what items have."""
    changed = Listed(pictures([5, 6] * 4), targets=[0, 1] * 4, target_transform=lambda label: label + 5)
    assert stream_from(changed, changed, **SMALL).spec.classes == ("5", "6")


def test_labels_of_any_kind_of_integer_or_text():
    for labels in ([np.int64(3), np.int32(1)], [torch.tensor(3), torch.tensor([1])], [True, False], [3, 1]):
        stream = stream_from(Listed(pictures(labels * 4)), Listed(pictures(labels)), **SMALL)
        assert stream.tests["test"].y.tolist() == [1, 0]
    assert stream_from(Listed(pictures(["b", "a"] * 4)), **SMALL).spec.classes == ("a", "b")
    assert stream_from(Listed(pictures([9, 10] * 4)), **SMALL).spec.classes == ("9", "10")


def test_a_data_set_of_tensors():
    x, y = torch.randint(0, 256, (8, 3, 6, 6), dtype=torch.uint8), torch.tensor([0, 1] * 4)
    stream = stream_from(TensorDataset(x, y), {"one": TensorDataset(x[:2], y[:2]), "two": (x[2:], y[2:])}, batch=2)
    assert list(stream.tests) == ["one", "two"]
    assert torch.equal(stream.train[torch.arange(8)].x, x)
    assert stream.spec.mean == (0.485, 0.456, 0.406)
    assert stream_from(TensorDataset(x, y), batch=2, mean=0.5, std=0.25).spec.mean == 0.5


def test_groups(tmp_path):
    x, y = torch.randint(0, 256, (8, 3, 6, 6), dtype=torch.uint8), torch.tensor([0, 1] * 4)
    places = list("aabbaabb")
    for test in ((x, y), TensorDataset(x, y)):
        stream = stream_from((x, y), test, groups={"place": places, "lens": np.arange(8)}, batch=2)
        samples = stream.tests["test"][torch.tensor([2, 0])]
        assert samples.groups["place"].codes.tolist() == [1, 0]
        assert (samples.groups["lens"].codes.tolist(), stream.train.groups) == ([2, 0], {})
    stream = stream_from((x, y), {"one": (x, y), "two": (x, y)}, groups={"two": places}, batch=2)
    assert (stream.tests["one"].groups, list(stream.tests["two"].groups)) == ({}, ["group"])
    for train in ((x, y), TensorDataset(x, y)):
        test = stream_from(train, groups={"row": list(range(8))}, batch=2).tests["test"]
        for row in range(len(test)):
            samples = test[torch.tensor([row])]
            assert torch.equal(samples.x[0], x[int(samples.groups["row"].names[samples.groups["row"].codes[0]])])
    for groups, words in (
        ({"one": places}, "groups are by the name of a test set: two"),
        (places, "groups are by the name"),
    ):
        with pytest.raises(BadRequest, match=words):
            stream_from((x, y), {"two": (x, y)}, groups=groups, batch=2)
    with pytest.raises(BadRequest, match="there are 8 samples, and group has 3"):
        stream_from((x, y), (x, y), groups=[1, 2, 3], batch=2)


# -- Files ------------------------------------------------------------------------------------------------------------


def default_loader(path):
    """As torchvision's, by whose name it is known."""
    return Image.open(path).convert("RGB")


@pytest.fixture
def image_folder(tmp_path):
    """A data set that lists its files, as torchvision's `ImageFolder` does."""
    samples = []
    for seed in range(8):
        save(picture(seed), tmp_path / f"{seed % 2}/{seed}.png")
        samples.append((str(tmp_path / f"{seed % 2}/{seed}.png"), seed % 2))
    return Listed(
        [None] * 8,
        samples=samples,
        targets=[label for _, label in samples],
        loader=default_loader,
        transform=None,
        classes=["even", "odd"],
    )


def test_files_go_through_the_cache(image_folder, cache_folder):
    stream = stream_from(Subset(image_folder, [3, 0, 1, 2, 4]), image_folder, **SMALL)
    assert isinstance(stream.train, Samples)
    assert len(list(cache_folder.glob("*.images"))) == 2
    assert stream.train.y.tolist() == [1, 0, 1, 0, 0]
    for image, row in zip(stream.train.x, [3, 0, 1, 2, 4]):
        assert np.array_equal(image.permute(1, 2, 0), pixels(image_folder.samples[row][0]))
    assert isinstance(stream_from(image_folder, in_memory_mb=0, **SMALL).tests["test"].source, StoredImages)
    assert stream_from(image_folder, **SMALL).spec.classes == ("even", "odd")


def test_files_that_a_transform_changes_are_read_by_the_data_set(image_folder, cache_folder):
    image_folder.items, image_folder.transform = pictures([0, 1] * 4), torch.nn.Identity()
    stream = stream_from(image_folder, image_folder, **SMALL)
    assert torch.equal(stream.train[torch.tensor([5])].x[0], as_bytes(image_folder.items[5][0]))
    assert not cache_folder.exists()


# -- Arrays, classes, tasks -------------------------------------------------------------------------------------------


def test_a_pair_of_arrays():
    x = np.random.default_rng(0).integers(0, 256, (40, 5, 6, 3))
    y = np.arange(40) % 4
    stream = stream_from((x, y), tasks=[[3, 0], [2, 1]], batch=4, hold_out=0.0)
    assert (stream.spec.shape, stream.tasks) == ((3, 5, 6), ((3, 0), (2, 1)))
    assert stream.tests["test"].y.bincount().tolist() == [2] * 4  # a fifth
    images = torch.cat([stream.train.x, stream.tests["test"].x]).permute(0, 2, 3, 1).numpy()
    assert sorted(image.tobytes() for image in images) == sorted(image.tobytes() for image in x.astype(np.uint8))
    for source in (stream.train, stream.tests["test"]):
        for image, label in zip(source.x, source.y):
            assert (x == image.permute(1, 2, 0).numpy()).all((1, 2, 3)).argmax() % 4 == label
    assert torch.equal(stream.train.x, stream_from((x, y), batch=4, seed=5).train.x)  # the same for every seed
    assert stream_from((x.transpose(0, 3, 1, 2), y), batch=4).spec.shape == (3, 5, 6)
    assert stream_from((torch.from_numpy(x / 255).permute(0, 3, 1, 2), list(y)), batch=4).spec.dtype == torch.float32


def test_names_of_classes_and_tasks_by_name():
    x, y = torch.zeros(8, 3, 4, 4, dtype=torch.uint8), torch.arange(8) % 4
    stream = stream_from((x, y), (x, y), classes=["n", "e", "s", "w"], tasks=[["w"], ["s", 0, "e"]], batch=2)
    assert (stream.spec.classes, stream.tasks) == (("n", "e", "s", "w"), ((3,), (2, 0, 1)))
    stream = stream_from((x, y + 7), (x, y + 7), tasks=[[10], [9, 8]], batch=2)
    assert (stream.spec.classes, stream.tasks) == (("7", "8", "9", "10"), ((3,), (2, 1)))
    names = ["w", "n", "e", "s"]
    stream = stream_from((x, [names[label] for label in y]), (x, [names[label] for label in y]), classes=names, batch=2)
    assert (stream.spec.classes, stream.train.y.tolist()) == (tuple(names), y.tolist())


X, Y = torch.zeros(8, 3, 4, 4, dtype=torch.uint8), torch.arange(8) % 2


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([],), {}, "training images has no images"),
        ((iter([]),), {}, r"takes a data set with a length and items \(image, label\), or a pair of arrays"),
        (((X, Y[:7]),), {}, "has 8 images and 7 labels"),
        (((X, Y.float()),), {}, "item 0: a label is an integer or a text, not 0.0"),
        ((Listed([(picture(1), None)]),), {}, "item 0: a label is an integer or a text, not None"),
        ((Listed([{"image": 1, "label": 2}]),), {}, r"items are pairs \(image, label\), not a dict"),
        ((Listed([picture(1)]),), {}, r"items are pairs \(image, label\), not a Image"),
        ((Listed([("photo.jpg", 0), ("photo.jpg", 1)] * 2),), {}, "a tensor .* not str"),
        (((X, Y * 0),), {}, "your own has training images of one class, 0"),
        (((X, Y), (X, Y + 1)), {}, "test set test, item 1: there are no training images of class 2"),
        (((X, Y), (X[:, :1], Y)), {}, r"images of test set test are \(1, 4, 4\) of torch.uint8, training"),
        (((X, Y), {}), {}, "tests takes a data set, or one or more by name"),
        (((X.int() - 1, Y),), {}, "whole numbers from 0 to 255, or floating point, not torch.int32"),
        (((X[0], Y[:3]),), {"batch": 1, "tests": (X[0, 0], Y[:4])}, r"images are \(N, channels, height, width\)"),
        (((X[:3], [0, 1, 1]),), {}, "class 0 has one image, and there are no tests"),
        (((X, Y),), {"classes": ["a"]}, "classes names a, and there are images of class 1"),
        (((X, Y),), {"tasks": [[0], [7]]}, "tasks has 7, and the classes are 0, 1"),
        (((X, Y),), {"tasks": [0, 1]}, r"tasks takes a number, or a list of classes per task, not \[0, 1\]"),
        (((X, Y),), {"tasks": 3}, "a divisor of the 2 classes, not 3"),
        (((X, Y),), {"blury": 3}, "a stream has no option blury; .*; did you mean blurry"),
        (((X, Y),), {"batch": "2"}, "batch takes an integer, not '2'"),
    ],
)  # fmt: skip
def test_what_makes_no_stream_is_refused(arguments, options, words):
    with pytest.raises(BadRequest, match=words) as error:
        stream_from(*arguments, **options)
    assert "\n" not in str(error.value)


def test_items_that_change_are_refused_when_they_are_read():
    items = Listed(pictures([0, 1] * 4), targets=[0, 1] * 4)
    stream = stream_from(items, items, **SMALL)
    items.items[3] = (picture(3), 0)
    with pytest.raises(BadRequest, match="training images, item 3: its label is 0 now, and was 1 before"):
        list(stream)
    tensors = Listed([(torch.zeros(3, 4, 4), row % 2) for row in range(8)], targets=[0, 1] * 4)
    stream = stream_from(tensors, tensors, batch=2)
    tensors.items[3] = (torch.zeros(3, 4, 5), 1)
    with pytest.raises(
        BadRequest, match=r"item 3: an image \(3, 4, 5\) of torch.float32, where the first is \(3, 4, 4\)"
    ):
        list(stream)
    tensors.items[3] = ()
    tensors.items.pop()
    with pytest.raises(BadRequest, match=r"item \d, cannot be read: IndexError|items are pairs"):
        list(stream)
