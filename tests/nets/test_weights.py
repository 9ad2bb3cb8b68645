"""Weights from the hub, without one: a stand-in for huggingface_hub that keeps its cache as the real one does."""

import hashlib
import sys
import types

import pytest
from safetensors.torch import save

from droptop import BadRequest, configure
from droptop.errors import DownloadFailed
from droptop.nets import NetConfig, ViTConfig, build
from droptop.nets.weights import describe, locate, sha256

DATA = save({name: value.contiguous() for name, value in build(ViTConfig(), 3, 4, 0, "random").state_dict().items()})


class Hub(types.ModuleType):
    """Repositories of one file; what was fetched lies under its SHA-256, with a link beside it."""

    def __init__(self, cache, online=True):
        super().__init__("huggingface_hub")
        self.cache, self.online, self.fetched = cache, online, 0
        self.HfApi = lambda: self  # asks the same hub

    def model_info(self, repository, timeout):
        assert 0 < timeout <= 30
        if not self.online:
            raise ConnectionError("the hub is not reached.\nwhatever else")

    def hf_hub_download(self, repository, filename, local_files_only=False):
        link = self.cache / f"{repository.replace('/', '--')}-{filename}"
        if link.exists():
            return str(link)
        if local_files_only:
            raise FileNotFoundError("cannot find it in the cache")
        assert self.online, "a download without a network is tried again and again, for half a minute"
        self.fetched += 1
        blob = self.cache / hashlib.sha256(DATA).hexdigest()
        blob.write_bytes(DATA)
        link.symlink_to(blob)
        return str(link)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    hub = Hub(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    return hub


def test_weights_from_the_hub_are_cached(hub):
    model = build(ViTConfig(), 3, 9, 0, "hf:timm/tiny")
    assert model.width == 64
    hub.online = False
    assert locate("hf:timm/tiny").read_bytes() == DATA
    assert hub.fetched == 1
    assert describe("hf:timm/tiny") == hashlib.sha256(DATA).hexdigest()


def test_a_damaged_cache_is_noticed(hub):
    path = locate("hf:timm/tiny")
    path.resolve().write_bytes(DATA[:-1] + b"?")
    with pytest.raises(DownloadFailed, match="damaged"):
        locate("hf:timm/tiny")


def test_without_a_network_or_the_library_one_line_says_so(hub, monkeypatch):
    hub.online = False
    with pytest.raises(
        DownloadFailed, match=r"hf:timm/tiny: the hub is not reached; on a machine .* pass a file"
    ) as error:
        locate("hf:timm/tiny")
    assert "\n" not in str(error.value)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadRequest, match=r"droptop\[hub\]"):
        locate("hf:timm/tiny")


def test_a_file_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"one")
    assert sha256(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"other")
    assert describe(str(path)) == hashlib.sha256(b"other").hexdigest()
    assert [describe(None), describe("random")] == [None, "random"]


@pytest.mark.parametrize("weights", ["nowhere", "hf:", "hf:timm", "hf:a/b/c", "."])
def test_bad_values_of_weights_are_refused(weights):
    with pytest.raises(BadRequest, match="--weights takes an existing file, hf:OWNER/NAME or random"):
        configure(weights=weights).options.check_machine()


def test_random_is_refused_for_a_resnet():
    with pytest.raises(BadRequest, match="--weights takes a file or hf:OWNER/NAME with a ResNet"):
        build(NetConfig(width=4), 3, 10, 0, "random")


def test_a_head_for_other_classes_is_left_out(tmp_path):
    from safetensors.torch import save_file

    source = build(NetConfig(width=4), 3, 1000, 1)
    save_file(source.state_dict(), tmp_path / "w")
    model, fresh = (build(NetConfig(width=4), 3, 10, 2, weights) for weights in (str(tmp_path / "w"), None))
    assert (model.conv1.weight == source.conv1.weight).all()
    assert (model.fc.weight == fresh.fc.weight).all()
