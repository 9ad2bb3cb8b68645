"""What L2P and DualPrompt share, against slow loops, and the traps that public implementations fell into."""

import copy

import pytest
import torch
import torch.nn.functional as F

from droptop import BadCheckpoint, BadRequest, configure, make_learner, make_stream
from droptop.learner_state import digest

from toys import differences, feed, toy_batches, toy_learner

PROMPT_METHODS = ["l2p", "dualprompt"]
over_prompts = pytest.mark.parametrize("method", PROMPT_METHODS)
PLAIN = {"debias": "none", "augment": "none"}


def frozen(learner):
    return {name: weight for name, weight in learner.model.vit.named_parameters() if not name.startswith("head.")}


@over_prompts
def test_batch_choice_takes_the_same_prompts_for_a_whole_batch(method):
    learner = feed(toy_learner(method, batch_choice=True, **PLAIN), toy_batches(8))
    x = torch.cat([batch[0] for batch in toy_batches(8, seed=3)])
    with torch.no_grad():
        (prefixes,) = learner.given(learner.model, learner.model.stem(learner.normalise(x)), {})
    assert all(torch.equal(prefix, prefix[:, :1].expand_as(prefix)) for prefix in prefixes.values())


@over_prompts
def test_gradients_reach_prompts_keys_and_head_and_nothing_else(method):
    learner = toy_learner(method)
    before = {name: weight.clone() for name, weight in frozen(learner).items()}
    names = {"l2p": ["keys", "prompts"], "dualprompt": ["experts", "general", "keys"]}[method]
    assert sorted(learner.weights) == [
        *(f"model.prompts.{name}" for name in names),
        "model.vit.head.bias",
        "model.vit.head.weight",
    ]
    feed(learner, toy_batches(4))
    trained = [weight for group in learner.optimizer.param_groups for weight in group["params"]]
    assert {id(weight) for weight in trained} == {id(weight) for weight in learner.weights.values()}
    for weight in trained:
        assert weight.grad.abs().sum() > 0
    for name, weight in frozen(learner).items():
        assert weight.grad is None
        assert torch.equal(weight, before[name]), name
    assert not [name for name in learner.state_dict() if "blocks" in name or "pos_embed" in name]


def slow_steps(method, batches, lr=0.05, pull_weight=None, renew=False):
    """The same learning by loops: sample by sample, torch's plain Adam, and no memory."""
    learner = toy_learner(method, **PLAIN)
    vit, prompts, config = learner.model.vit, learner.model.prompts, learner.config
    weights = list(learner.weights.values())
    optimizer, before, losses = torch.optim.Adam(weights, lr, (0.9, 0.999)), 0, []
    pull_weight = pull_weight or {"l2p": 0.1, "dualprompt": 1.0}[method]
    for x, y, task in batches:
        if task != before and method == "dualprompt":
            prompts.experts.data[task] = prompts.experts.data[before]
        if task != before and renew:
            optimizer = torch.optim.Adam(weights, lr, (0.9, 0.999))
        before = task
        total = torch.zeros(())
        for image, label in zip((x.float() / 255 - 0.5) / 0.25, y):
            first = vit.stem(image[None])
            query = vit.trunk(first).pooled.detach()
            cosine = F.cosine_similarity(query, prompts.keys)
            if method == "l2p":
                best = sorted(range(config.pool), key=lambda prompt: -cosine[prompt].item())[:5]
                parts = torch.cat([prompts.prompts[prompt] for prompt in best], 2)  # blocks, 2, 25, heads, e
                pull = pull_weight * sum(cosine[prompt] for prompt in best)
                prefixes = {block: parts[block].transpose(1, 2)[:, None] for block in range(5)}
            else:
                parts = [*prompts.general[0], *prompts.experts[task]]
                prefixes = {block: part.transpose(1, 2)[:, None] for block, part in enumerate(parts)}
                pull = pull_weight * cosine[task]
            logits = vit.head(vit.trunk(first, prefixes))
            total = total + F.cross_entropy(logits, label[None]) - pull
        loss = total / len(y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [weight.detach().clone() for weight in weights]


@over_prompts
def test_learning_against_a_slow_loop(method):
    """Cross-entropy over all classes, minus the pull, clipped, by Adam; stand-ins from the stream fill the batch."""
    batches = [(x, y, 0) for x, y, _ in toy_batches(2, size=6)]
    learner = toy_learner(method, **PLAIN)
    learner.remember = lambda stream: None  # the memory stays empty: stream rows stand in, each of them once
    losses = [learner.observe(*batch).item() for batch in batches]
    expected, weights = slow_steps(method, batches)
    assert losses == pytest.approx(expected, rel=1e-4)
    for name, weight in zip(learner.weights, weights):
        if name == "model.prompts.experts":
            weight, learner.weights[name] = weight[:1], learner.weights[name][:1]  # those to come follow, see below
        torch.testing.assert_close(learner.weights[name], weight, rtol=1e-3, atol=1e-3)


@over_prompts
def test_learning_as_published_against_a_slow_loop(method):
    """A pull of 1, a learning rate by the batch, and a new Adam where the second task begins; each sample chooses."""
    batches = [(x, y, task) for (x, y, _), task in zip(toy_batches(4, size=6), (0, 0, 1, 1))]
    learner = toy_learner(method, preset="as-published", batch_choice=False, **PLAIN)
    learner.remember = lambda stream: None  # the memory stays empty: stream rows stand in, each of them once
    losses = [learner.observe(*batch).item() for batch in batches]
    expected, weights = slow_steps(method, batches, lr=0.05 * 6 / 256, pull_weight=1.0, renew=True)
    assert losses == pytest.approx(expected, rel=1e-4)
    for name, weight in zip(learner.weights, weights):
        trained = slice(2) if name == "model.prompts.experts" else slice(None)  # those to come follow
        torch.testing.assert_close(learner.weights[name][trained], weight[trained], rtol=1e-3, atol=1e-4)


@over_prompts
def test_a_renewed_adam_resumes_exactly(method):
    """Also where the first step after the checkpoint is that of a new task, and in the middle of that."""
    batches = toy_batches(8)
    straight, states = toy_learner(method, renew_optimizer=True), {}
    for step, batch in enumerate(batches):
        if step in (4, 5, 6):
            states[step] = copy.deepcopy(straight.state_dict())
        straight.observe(*batch)
    for step, state in states.items():
        resumed = toy_learner(method, seed=1, renew_optimizer=True)
        resumed.load_state_dict(state)
        assert differences(feed(resumed, batches[step:]).state_dict(), straight.state_dict()) == []


@over_prompts
def test_adam_is_made_anew_at_each_task_alone(method):
    learner = toy_learner(method, renew_optimizer=True)
    [*_, state] = learner.optimizer.state.values()
    counts = []
    for x, y, task in toy_batches(6, tasks=2) + toy_batches(2):
        places = [value.data_ptr() for value in state.values()]
        learner.observe(x, y, task)
        assert [value.data_ptr() for value in state.values()] == places  # as CUDA graphs need it
        counts.append(int(state["step"]))
    assert counts == [1, 2, 3, 1, 2, 3, 1, 1]


@over_prompts
def test_presets_stand_for_options_that_others_win_over(method):
    default = configure("split-cifar10", method)
    assert configure("split-cifar10", method, preset="paper") == default
    published = configure("split-cifar10", method, preset="as-published").learner
    assert (published.pull, published.lr_scale, published.renew_optimizer) == (1.0, "batch/256", True)
    assert (published.batch_choice, published.query_image) == (True, "augmented")
    assert (published.lr, published.memory) == (default.learner.lr, default.learner.memory)
    memories = [
        configure(data, method, preset="memory-by-method").learner.memory
        for data in ("split-cifar10", "split-cifar100")
    ]
    assert memories == {"l2p": [200, 200], "dualprompt": [500, 500]}[method]
    assert configure("split-cifar10", method, preset="as-published", pull=0.3).learner.pull == 0.3


@over_prompts
def test_a_preset_is_the_run_that_its_options_are(method):
    options = {"pull": 1.0, "lr_scale": "batch/256", "renew_optimizer": True}
    options |= {"batch_choice": True, "query_image": "augmented"}
    named, spelled = (configure("fashion", method, **given) for given in ({"preset": "as-published"}, options))
    assert named.fingerprint() == spelled.fingerprint() != configure("fashion", method).fingerprint()


def test_presets_are_refused_where_there_is_none():
    with pytest.raises(BadRequest, match="--preset takes one of paper, tuned, not as-published"):
        configure("fashion", "er", preset="as-published")
    with pytest.raises(
        BadRequest, match="--preset takes one of paper, as-published, memory-by-method, tuned, not papr"
    ):
        configure("fashion", "l2p", preset="papr")


@over_prompts
def test_classes_of_the_past_are_not_masked(method):
    """While a task of classes 2 and 3 is learned, logits of classes 0 and 1 are in the loss, of all rows."""
    learner = feed(toy_learner(method, **PLAIN), toy_batches(8)[:4])
    seen, loss = [], learner.loss
    learner.loss = lambda logits, batch: seen.append((logits, batch.y)) or loss(logits, batch)
    learner.observe(*toy_batches(8)[4])
    ((logits, y),) = seen
    assert logits.isfinite().all()
    assert logits.shape == (8 + 6, 4)
    # The gradient of the head's bias is that of cross-entropy over all classes, before it is clipped.
    bias = learner.model.vit.classifier.bias.grad
    expected = (logits.softmax(1) - F.one_hot(y, 4)).mean(0)
    torch.testing.assert_close(F.normalize(bias, dim=0), F.normalize(expected.detach(), dim=0), atol=1e-5, rtol=1e-4)


@over_prompts
def test_gradients_are_clipped(method):
    learner = feed(toy_learner(method, clip=0.01), toy_batches(2))
    norm = torch.nn.utils.get_total_norm([weight.grad for weight in learner.weights.values()])
    assert norm.item() == pytest.approx(0.01, rel=1e-3)


@over_prompts
def test_two_models_are_clipped_each_by_its_own_norm(method):
    learner = feed(toy_learner(method, clip=0.01, reference=True), toy_batches(2))
    for model in learner.replicas:
        norm = torch.nn.utils.get_total_norm([w.grad for w in model.parameters() if w.grad is not None])
        assert norm.item() == pytest.approx(0.01, rel=1e-3)


@over_prompts
def test_the_memory_keeps_the_query_of_the_plain_image(method):
    """Whatever is dropped, augmented or learned; and what is kept is what would be computed."""
    learner = feed(toy_learner(method, gamma=50.0, kappa_0=25.0), toy_batches(6))
    vit, rows, size = learner.model.vit, learner.memory.rows, int(learner.memory.size)
    with torch.no_grad():
        expected = vit.trunk(vit.stem(learner.normalise(rows["x"][:size]))).pooled
    torch.testing.assert_close(rows["query"][:size], expected, rtol=1e-4, atol=1e-5)


@over_prompts
def test_query_image_augmented_asks_with_the_augmented_image(method):
    learner = toy_learner(method, query_image="augmented", gamma=50.0, kappa_0=25.0)
    seen, prefixes = [], learner.prefixes
    learner.prefixes = lambda prompts, query, rows: seen.append(query) or prefixes(prompts, query, rows)
    images, prepare = [], learner.prepare
    learner.prepare = lambda x: images.append(prepare(x)) or images[-1]
    feed(learner, toy_batches(2))
    assert "query" not in learner.memory.rows
    vit = learner.model.vit
    torch.testing.assert_close(seen[0], vit.trunk(vit.stem(images[0])).pooled)


@over_prompts
@pytest.mark.parametrize(
    ("data", "memory"),
    [("split-cifar10", 200), ("split-cifar100", 500), ("split-tiny-imagenet9", 200), ("fashion-sticker", 200)],
)
def test_the_papers_settings(method, data, memory):
    config = configure(data, method)
    assert (config.droptop.gamma, config.droptop.kappa_0) == (2.0, 1.0)
    learner = config.learner
    assert (learner.lr, learner.memory, learner.memory_batch, config.stream.batch) == (0.05, memory, 32, 32)
    assert (learner.beta_1, learner.beta_2, learner.clip, learner.lr_scale) == (0.9, 0.999, 1.0, "none")
    assert config.net.width is None


@over_prompts
def test_impossible_settings_are_refused(method):
    with pytest.raises(BadRequest, match="--momentum takes 0 with Adam"):
        configure("fashion", method, momentum=0.9)
    with pytest.raises(BadRequest, match="a ViT takes pretrained weights: --weights"):
        make_learner(method, make_stream("fashion"))
    with pytest.raises(BadRequest, match=r"-blocks takes .* the ViT's 4"):
        make_learner(method, make_stream("fashion"), weights="random", depth=4)


@over_prompts
def test_images_are_normalised_as_the_weights_know_them(method):
    learner = make_learner(method, make_stream("fashion"), weights="random", pixel_mean=0.4, pixel_std=0.2)
    white = learner.normalise(torch.full((1, 3, 32, 32), 255, dtype=torch.uint8))
    torch.testing.assert_close(white, torch.full_like(white, (1 - 0.4) / 0.2))


@over_prompts
def test_a_state_is_refused_with_other_frozen_weights(method):
    learner = feed(toy_learner(method), toy_batches(3))
    state = copy.deepcopy(learner.state_dict())
    toy_learner(method, seed=4).load_state_dict(state)
    other = toy_learner(method, heads=2)
    with torch.no_grad():
        other.model.vit.norm.bias += 1e-6
    other.frozen = digest(weight for weight in other.models.parameters() if not weight.requires_grad)
    with pytest.raises(BadCheckpoint, match="frozen weights are others"):
        other.load_state_dict(state)
