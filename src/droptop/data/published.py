"""Published data sets with a shortcut, in the layouts in which they are handed out, below the root of the data:

    bar/{train,test}/*.jpg, bar/metadata.json                BAR: actions before their usual places
    celeba/img_align_celeba/*.jpg, celeba/list_*.csv         CelebA: blond hair or not, mostly of women
    spawrious224/{0,1}/PLACE/BREED/*.png                     Spawrious: dogs, each breed in its place
    nico/train/CONTEXT/CLASS/*.jpg                           NICO++, track 1: sixty classes in six contexts

Waterbirds comes from the hub: `hub`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from droptop.data import listed
from droptop.data.csv_tables import read_table
from droptop.data.image_cache import silent
from droptop.data.image_folders import entries, fifth
from droptop.data.left_out import ENDINGS
from droptop.data.listed import TRAIN, ListedImages, Listing
from droptop.data.root import FileProgress, dataset_folder
from droptop.errors import BadRequest, meant
from droptop.system.json_files import read_json

BREEDS = ("bulldog", "dachshund", "labrador", "corgi")  # in the order of the places below
IMAGES = 3168  # of each breed in each place
CORRELATED = (0.97, 0.87)  # share of a breed's training images in its place, in the folders 0 and 1
CONTEXTS = ("autumn", "dim", "grass", "outdoor", "rock", "water")


class Row(NamedTuple):
    """Hold what is known of an image."""

    name: str  # its path below the folder of the data set
    label: str
    part: str  # `TRAIN` or the name of a test set
    group: str = ""  # in the column of groups that the data set has


@dataclass(frozen=True)
class Published:
    """Say where a data set lies, how its layout is read, and where it is found."""

    name: str  # of the stream
    folder: str  # below the root
    how: str  # how to get it
    rows: Callable[[Path], Iterator[Row]]  # from the folder
    column: str | None = None  # the name of its groups

    def read(self, root: Path | None) -> ListedImages:
        """Return the images; raise `Missing` where there is no such folder, and refuse one in another layout."""
        home = dataset_folder(self.name, root, self.folder, self.how)
        rows = list(self.rows(home))
        parts: dict[str, list[int]] = {TRAIN: []}
        for number, row in enumerate(rows):
            parts.setdefault(row.part, []).append(number)
            if not (home / row.name).is_file():
                raise BadRequest(f"{home / row.name} is missing: {self.name} needs every image")
        names, labels = [row.name for row in rows], [row.label for row in rows]
        groups = {} if self.column is None else {self.column: [row.group for row in rows]}
        return listed.images_of(
            Listing(str(home), home, names, labels, parts, lambda number: str(home / names[number]), groups)
        )

    def where(self, root: Path | None) -> str:
        """Return the folder; raise `Missing` where there is none. Reads nothing in it."""
        return str(dataset_folder(self.name, root, self.folder, self.how))

    def check(self, root: Path | None, progress: FileProgress = silent) -> str:
        """Read every image and return a line per part; refuse those that do not decode."""
        return listed.check(self.read(root), progress)


def images_in(home: Path, folder: str) -> list[str]:
    """Return the images in a folder below `home`, sorted, as paths below `home`; refuse a folder without any."""
    found = entries(home / folder, lambda entry: entry.name.lower().endswith(ENDINGS) and entry.is_file())
    if not found:
        raise BadRequest(f"{home / folder} holds no images ({', '.join(ENDINGS)})")
    return [f"{folder}/{name}" for name in found]


# -- The layouts ------------------------------------------------------------------------------------------------------


def bar(home: Path) -> Iterator[Row]:
    """Yield the images that metadata.json lists: {"NAME": {"cls": "climbing", "train": true}} is train/NAME.jpg."""
    path = home / "metadata.json"
    try:
        for name, about in read_json(path).items():
            part = "train" if about["train"] else "test"
            yield Row(f"{part}/{name}.jpg", str(about["cls"]), TRAIN if about["train"] else "test")
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise BadRequest(f"{path} is damaged: {error}") from None


def celeba(home: Path) -> Iterator[Row]:
    """Yield the training and test images that the two tables list; those for validation are left out."""
    attributes, partition = (
        read_table(home / f"list_{name}.csv").columns for name in ("attr_celeba", "eval_partition")
    )
    for table, name, column in (
        (attributes, "attr_celeba", "Blond_Hair"),
        (attributes, "attr_celeba", "Male"),
        (attributes, "attr_celeba", "image_id"),
        (partition, "eval_partition", "image_id"),
        (partition, "eval_partition", "partition"),
    ):
        if column not in table:
            raise BadRequest(f"{home / f'list_{name}.csv'} has no column {column}")
    folder = "img_align_celeba"
    if (home / folder / folder).is_dir():  # as archives of Kaggle unpack
        folder = f"{folder}/{folder}"
    parts = {"0": TRAIN, "2": "test"}
    part_of = dict(zip(partition["image_id"], partition["partition"]))
    for name, blond, male in zip(*(attributes[column] for column in ("image_id", "Blond_Hair", "Male"))):
        if name not in part_of:
            raise BadRequest(f"{home / 'list_eval_partition.csv'} has no row for {name}")
        if part_of[name] in parts:
            hair, gender = "blond" if blond == "1" else "not blond", "male" if male == "1" else "female"
            yield Row(f"{folder}/{name}", hair, parts[part_of[name]], f"{hair} {gender}")


class Places(NamedTuple):
    """Say where the breeds of a variant of Spawrious are, in the order of `BREEDS`."""

    training: tuple[str, ...]
    testing: tuple[str, ...]
    filler: str | None  # where the rest of every breed's training images is; None in many-to-many variants


SPAWRIOUS = {
    "o2o_easy": Places(("desert", "jungle", "dirt", "snow"), ("dirt", "snow", "desert", "jungle"), "beach"),
    "o2o_medium": Places(("mountain", "beach", "dirt", "jungle"), ("jungle", "dirt", "beach", "snow"), "desert"),
    "o2o_hard": Places(("jungle", "mountain", "snow", "desert"), ("mountain", "snow", "desert", "jungle"), "beach"),
    "m2m_easy": Places(("desert", "mountain", "dirt", "jungle"), ("dirt", "jungle", "mountain", "desert"), None),
    "m2m_medium": Places(("beach", "snow", "mountain", "desert"), ("desert", "mountain", "beach", "snow"), None),
    "m2m_hard": Places(("dirt", "jungle", "snow", "beach"), ("snow", "beach", "dirt", "jungle"), None),
}
PARTNER = (1, 0, 3, 2)  # in many-to-many variants, the breed whose place a breed is in as well


def spawrious(places: Places, home: Path) -> Iterator[Row]:
    """Yield the images of a variant, as the authors put it together; of too many images, the first by name.

    One-to-one: a breed is in its place, and the rest in one place for all; folder 0 and folder 1 are two environments.
    Many-to-many: two breeds share two places in training, and two others in testing.
    """
    for breed, name in enumerate(BREEDS):
        for number, share in enumerate(CORRELATED):
            if places.filler is not None:
                count, folder = int(share * IMAGES), number
                chosen: list[tuple[str, int | None, str]] = [(places.training[breed], count, TRAIN)]
                chosen.append((places.filler, IMAGES - count, TRAIN))
                chosen.append((places.testing[breed], None, "test"))
            else:
                of, folder = (breed, PARTNER[breed])[number], 0
                chosen = [(places.training[of], IMAGES, TRAIN), (places.testing[of], None, "test")]
            for place, most, part in chosen:
                for image in images_in(home, f"{folder}/{place}/{name}")[:most]:
                    yield Row(image, name, part, place)


def nico(context: str, home: Path) -> Iterator[Row]:
    """Yield the images of all contexts: those of `context` are for testing, and so is a fifth of each of the others."""
    for each in CONTEXTS:
        for label in entries(home / "train" / each, lambda entry: entry.is_dir()):
            images = images_in(home, f"train/{each}/{label}")
            held = set(fifth(range(len(images)), images.__getitem__)) if len(images) > 1 else set[int]()
            for row, image in enumerate(images):
                yield Row(image, label, "unseen" if each == context else "seen" if row in held else TRAIN, each)


# -- By name ----------------------------------------------------------------------------------------------------------


BAR = Published("bar", "bar", "github.com/alinlab/BAR has it", bar)
CELEBA = Published(
    "celeba", "celeba", "kaggle.com/datasets/jessicali9530/celeba-dataset has it with tables in CSV", celeba, "group"
)


def known_spawrious(variant: str) -> Published:
    """Return a variant of Spawrious; refuse one that is not known."""
    if variant not in SPAWRIOUS:
        known = ", ".join(SPAWRIOUS)
        raise BadRequest(f"Spawrious has no variant {variant}: there are {known}{meant(variant, SPAWRIOUS)}")
    how = "github.com/aengusl/spawrious says where the archive is"
    return Published(f"spawrious:{variant}", "spawrious224", how, partial(spawrious, SPAWRIOUS[variant]), "place")


def known_nico(context: str) -> Published:
    """Return NICO++ with a context kept for testing; refuse one that is not known."""
    if context not in CONTEXTS:
        raise BadRequest(f"NICO++ has no context {context}: there are {', '.join(CONTEXTS)}{meant(context, CONTEXTS)}")
    return Published(
        f"nico:{context}", "nico", "nicochallenge.com/dataset has track 1", partial(nico, context), "context"
    )
