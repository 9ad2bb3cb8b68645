import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps

from droptop import make_stream
from droptop.data.image_files import find_images, load, load_all
from droptop.streams import find

from pictures import picture, save, write_tree


def test_single_files_give_the_pixels_of_a_stream_of_folders(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 40, "b": 40}, "test": {"a": 3, "b": 3}}, size=(37, 24))
    save(picture(99, (301, 150)), tree / "test/a/large.jpg")  # decoded at a part of its size
    test = make_stream(f"folder:{tree}", image_size=16).tests["test"]
    files = find_images([tree / "test"])
    batches = list(load_all(files, (3, 16, 16), 0, batch=4))
    assert [len(paths) for paths, _, _ in batches] == [4, 3]
    assert torch.equal(torch.cat([x for _, x, _ in batches]), test[torch.arange(len(test))].x)


def test_images_of_another_size_are_given_a_border(tmp_path):
    samples = make_stream("fashion").tests["clean"][torch.arange(3)]
    border = find("fashion").border
    for image in samples.x:
        whole = Image.fromarray(image.permute(1, 2, 0).numpy())
        whole.save(tmp_path / "whole.png")
        inner = whole.crop((2, 2, 30, 30)).convert("L")
        inner.save(tmp_path / "inner.png")  # as Fashion-MNIST has it
        assert torch.equal(load(tmp_path / "whole.png", (3, 32, 32), border), image)
        assert torch.equal(load(tmp_path / "inner.png", (3, 32, 32), border), image)
    scan = picture(1, (300, 280))
    scan.save(tmp_path / "scan.png")
    middle = ImageOps.fit(scan, (28, 28), Image.Resampling.BILINEAR)
    expected = F.pad(torch.from_numpy(np.array(middle)).permute(2, 0, 1), (2, 2, 2, 2))
    assert torch.equal(load(tmp_path / "scan.png", (3, 32, 32), border), expected)
    assert find("split-mnist").border == find("biased-mnist").border == 2
    assert find("split-cifar10").border == find("folder:x").border == 0
