"""The plugin in Avalanche's own strategies where avalanche-lib is installed, and in a loop with their callbacks."""

import copy
import pickle
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import droptop
from droptop.integrations.avalanche import DropTopPlugin
from droptop.rng import seeded

from models import CLASSES, ResNet
from toys import FLOAT_SPEC, toy_batches

OPTIONS = {"period": 1, "history": 2, "significance": 0.4}


class Remembered:
    """A data set that is to be read as for evaluation, as Avalanche's are where they are not to be augmented."""

    def __init__(self):
        self.rows = []

    def __len__(self):
        return len(self.rows)

    def eval(self):
        return self.rows


class Strategy:
    """Calls plugins back in the order of Avalanche's SGD strategies; remembers the first batch of an experience."""

    def __init__(self, plugins):
        with seeded(0, "init"):
            self.model = ResNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05)
        self.replay = SimpleNamespace(storage_policy=SimpleNamespace(buffer=Remembered()))
        self.plugins = [self.replay, *plugins]

    def call(self, event):
        for plugin in self.plugins:
            getattr(plugin, event, lambda strategy: None)(self)

    def train(self, experience):
        self.call("before_training_exp")
        for x, y, _ in experience:
            kept = self.replay.storage_policy.buffer.rows
            self.mb_x = torch.cat([x, *(image[None] for image, _, _ in kept)])
            self.mb_y = torch.cat([y, *(label[None] for _, label, _ in kept)])
            self.call("before_training_iteration")
            self.optimizer.zero_grad()
            self.call("before_forward")
            output = self.model(self.mb_x)
            self.call("after_forward")
            F.cross_entropy(output, self.mb_y).backward()
            self.call("before_update")
            self.optimizer.step()
            self.call("after_update")
        x, y, _ = experience[0]
        self.replay.storage_policy.buffer.rows += [(image, label, 0) for image, label in zip(x, y)]
        return self


def experiences():
    batches = toy_batches(6, spec=FLOAT_SPEC)
    return batches[:3], batches[3:]


def trained(*plugins):
    strategy = Strategy(plugins)
    for experience in experiences():
        strategy.train(experience)
    return strategy


def weights(strategy):
    return [weight.clone() for weight in strategy.model.state_dict().values()]


def test_the_plugin_gives_what_attach_gives():
    plugin = DropTopPlugin("maxpool", "layer4", CLASSES, gamma=20.0, **OPTIONS)
    strategy = trained(plugin)
    ours = Strategy([])
    layer = droptop.attach(ours.model, "maxpool", "layer4", CLASSES, gamma=20.0, **OPTIONS)
    kept = (torch.zeros(0, 3, 16, 16), torch.zeros(0, dtype=torch.int64))
    for experience in experiences():
        for x, y, _ in experience:
            x, y = torch.cat([x, kept[0]]), torch.cat([y, kept[1]])
            ours.optimizer.zero_grad()
            with layer.labels(y):
                logits = ours.model(x)
            F.cross_entropy(logits, y).backward()
            ours.optimizer.step()
            layer.adjust(*kept)
        kept = (torch.cat([kept[0], experience[0][0]]), torch.cat([kept[1], experience[0][1]]))
    assert all(torch.equal(a, b) for a, b in zip(weights(strategy), weights(ours)))
    for name, value in layer.state_dict().items():
        torch.testing.assert_close(plugin.layer.state_dict()[name], value, equal_nan=True)
    assert plugin.layer.droptop.intensity.loss[0, :2].isfinite().all()  # of classes that the memory holds


def test_gamma_zero_is_no_plugin():
    plain, nothing, something = (
        weights(trained(*plugins))
        for plugins in (
            (),
            (DropTopPlugin("maxpool", "layer4", CLASSES, gamma=0.0),),
            (DropTopPlugin("maxpool", "layer4", CLASSES, gamma=30.0),),
        )
    )
    assert all(torch.equal(a, b) for a, b in zip(plain, nothing))
    assert not all(torch.equal(a, b) for a, b in zip(plain, something))


def test_the_plugin_survives_errors_and_copies():
    plugin = DropTopPlugin("maxpool", "layer4", CLASSES, **OPTIONS)
    strategy = trained(plugin)
    first, second = experiences()
    x, y, _ = first[0]
    with pytest.raises(RuntimeError):
        strategy.train([(x[:, :2], y, 0)])
    strategy.train(first)
    copied = pickle.loads(pickle.dumps(strategy))
    assert copied.plugins[1].layer.model is copied.model
    assert all(torch.equal(a, b) for a, b in zip(weights(strategy.train(second)), weights(copied.train(second))))
    steps = plugin.layer.steps
    strategy.model = copy.deepcopy(strategy.model)
    strategy.train(second)
    assert plugin.layer.model is strategy.model
    assert plugin.layer.steps == steps + len(second)


@pytest.mark.filterwarnings("ignore")  # of other people's
def test_avalanches_strategies_run_the_plugin():
    try:
        avalanche = pytest.importorskip("avalanche", exc_type=ImportError)
        from avalanche.benchmarks.scenarios import class_incremental_benchmark
        from avalanche.benchmarks.utils import as_classification_dataset
        from avalanche.training import Naive
        from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
    except RuntimeError as error:  # torchvision beside a torch that it was not built for
        pytest.skip(str(error))
    assert avalanche.__version__ >= "0.6"
    x, y = (torch.cat(parts) for parts in list(zip(*toy_batches(8, spec=FLOAT_SPEC)))[:2])
    data = torch.utils.data.TensorDataset(x, y)
    data.targets = y.tolist()
    dataset = as_classification_dataset(data)

    def final(*plugins):
        torch.manual_seed(0)
        benchmark = class_incremental_benchmark({"train": dataset}, num_experiences=2, class_order=[0, 1, 2, 3])
        model = ResNet()
        strategy = Naive(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), 0.05),
            criterion=nn.CrossEntropyLoss(),
            train_mb_size=8,
            evaluator=EvaluationPlugin(loggers=[]),
            plugins=[ReplayPlugin(mem_size=10), *plugins],
        )
        for experience in benchmark.train_stream:
            strategy.train(experience)
        return strategy

    plugin = DropTopPlugin("maxpool", "layer4", CLASSES, gamma=30.0, **OPTIONS)
    plain, nothing, something = final(), final(DropTopPlugin("maxpool", "layer4", CLASSES, gamma=0.0)), final(plugin)
    assert all(torch.equal(a, b) for a, b in zip(weights(plain), weights(nothing)))
    assert not all(torch.equal(a, b) for a, b in zip(weights(plain), weights(something)))
    loss = plugin.layer.droptop.intensity.loss[0]
    assert loss[:2].isfinite().all()
    assert loss[2:].isnan().all()
    assert plugin.layer.steps == 8
