"""L2P and DualPrompt against slow loops, and the traps that public implementations fell into."""

import copy

import pytest
import torch
import torch.nn.functional as F

from droptop import BadBatch, BadCheckpoint, BadRequest, configure, make_learner, make_stream
from droptop.learner_state import digest
from droptop.nets.prompts import choose, chosen_prefixes, cosines, shared_prefixes, taken

from toys import differences, feed, snapshot, toy_batches, toy_learner

PROMPT_METHODS = ["l2p", "dualprompt"]
over_prompts = pytest.mark.parametrize("method", PROMPT_METHODS)
PLAIN = {"debias": "none", "augment": "none"}


def frozen(learner):
    return {name: weight for name, weight in learner.model.vit.named_parameters() if not name.startswith("head.")}


# -- Prompts as prefixes -----------------------------------------------------------------------------------------------


def test_every_prefix_is_where_it_belongs():
    """Against loops: laid out by a reshape without a permute, keys would be values and samples would swap prompts."""
    pool = torch.randn(6, 3, 2, 4, 2, 5)  # prompts, blocks, keys and values, length, heads, numbers
    choice = torch.tensor([[1, 4], [0, 5], [3, 1]])
    prefixes = chosen_prefixes(pool, choice, start=2)
    assert sorted(prefixes) == [2, 3, 4]
    for block in range(3):
        assert prefixes[2 + block].shape == (2, 3, 2, 8, 5)
        for part in range(2):
            for sample in range(3):
                for head in range(2):
                    expected = torch.cat([pool[prompt, block, part, :, head] for prompt in choice[sample]])
                    assert torch.equal(prefixes[2 + block][part, sample, head], expected)
    alone = chosen_prefixes(pool[:1], torch.zeros(7, 1, dtype=torch.int64))
    shared = shared_prefixes(pool[:1], 7)
    assert all(torch.equal(alone[block], shared[block]) for block in range(3))


def test_choice_by_cosine_one_sample_at_a_time():
    query, keys = torch.randn(9, 8), torch.randn(6, 8) * torch.arange(1, 7)[:, None]  # long keys win nothing
    similarity = cosines(query, keys)
    torch.testing.assert_close(similarity, F.cosine_similarity(query[:, None], keys[None], dim=-1))
    alone = torch.cat([choose(cosines(row[None], keys), 2) for row in query])
    assert torch.equal(choose(similarity, 2), alone)
    together = choose(similarity, 2, together=True)
    votes = torch.bincount(alone.flatten(), minlength=6)
    assert (together == together[0]).all()
    assert sorted(votes[together[0]].tolist()) == sorted(votes.tolist())[-2:]
    assert torch.equal(taken(alone, 6).sum(0), votes)


@over_prompts
def test_batch_wise_choice_is_an_option(method):
    learner = feed(toy_learner(method, batch_choice=True, **PLAIN), toy_batches(8))
    x = torch.cat([batch[0] for batch in toy_batches(8, seed=3)])
    with torch.no_grad():
        (prefixes,) = learner.given(learner.model, learner.model.stem(learner.normalise(x)), {})
    assert all(torch.equal(prefix, prefix[:, :1].expand_as(prefix)) for prefix in prefixes.values())


# -- What is learned ---------------------------------------------------------------------------------------------------


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


def slow_steps(method, batches):
    """The same learning by loops: sample by sample, torch's plain Adam, and no memory."""
    learner = toy_learner(method, **PLAIN)
    vit, prompts, config = learner.model.vit, learner.model.prompts, learner.config
    weights = list(learner.weights.values())
    optimizer = torch.optim.Adam(weights, 0.05, (0.9, 0.999))
    losses = []
    for x, y, task in batches:
        total = torch.zeros(())
        for image, label in zip((x.float() / 255 - 0.5) / 0.25, y):
            first = vit.stem(image[None])
            query = vit.trunk(first).pooled.detach()
            cosine = F.cosine_similarity(query, prompts.keys)
            if method == "l2p":
                best = sorted(range(config.pool), key=lambda prompt: -cosine[prompt].item())[:5]
                parts = torch.cat([prompts.prompts[prompt] for prompt in best], 2)  # blocks, 2, 25, heads, e
                pull = 0.1 * sum(cosine[prompt] for prompt in best)
                prefixes = {block: parts[block].transpose(1, 2)[:, None] for block in range(5)}
            else:
                parts = [*prompts.general[0], *prompts.experts[task]]
                prefixes = {block: part.transpose(1, 2)[:, None] for block, part in enumerate(parts)}
                pull = cosine[task]
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


def test_the_learning_rate_scales_with_the_batch():
    learner = toy_learner("l2p", lr_scale="batch/256")
    learner.observe(*toy_batches(1, size=16)[0])
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(0.05 * 16 / 256)


# -- Queries -----------------------------------------------------------------------------------------------------------


@over_prompts
def test_the_memory_keeps_the_query_of_the_plain_image(method):
    """Whatever is dropped, augmented or learned; and what is kept is what would be computed."""
    learner = feed(toy_learner(method, gamma=50.0, kappa_0=25.0), toy_batches(6))
    vit, rows, size = learner.model.vit, learner.memory.rows, int(learner.memory.size)
    with torch.no_grad():
        expected = vit.trunk(vit.stem(learner.normalise(rows["x"][:size]))).pooled
    torch.testing.assert_close(rows["query"][:size], expected, rtol=1e-4, atol=1e-5)


@over_prompts
def test_queries_of_augmented_images_are_an_option(method):
    learner = toy_learner(method, query_image="augmented", gamma=50.0, kappa_0=25.0)
    seen, prefixes = [], learner.prefixes
    learner.prefixes = lambda prompts, query, rows: seen.append(query) or prefixes(prompts, query, rows)
    images, prepare = [], learner.prepare
    learner.prepare = lambda x: images.append(prepare(x)) or images[-1]
    feed(learner, toy_batches(2))
    assert "query" not in learner.memory.rows
    vit = learner.model.vit
    torch.testing.assert_close(seen[0], vit.trunk(vit.stem(images[0])).pooled)


# -- PromptPool and experts --------------------------------------------------------------------------------------------------


def test_usage_counts_every_choice():
    learner = feed(toy_learner("l2p", pool=7, chosen=3), toy_batches(5))
    usage = learner.report()["prompts"]
    assert len(usage) == 7
    assert sum(usage) == 5 * (8 + 6) * 3
    assert max(usage) <= 5 * (8 + 6)


def test_a_sample_is_trained_with_the_expert_of_its_task():
    learner = feed(toy_learner("dualprompt", memory=100, **PLAIN), toy_batches(8))
    size = int(learner.memory.size)
    assert torch.equal(learner.memory.rows["task"][:size], learner.memory.rows["y"][:size] // 2)
    rows = learner.memory.read(torch.arange(size))
    prefixes = learner.prefixes(learner.model.prompts, rows["query"], rows)
    prompts = learner.model.prompts
    for sample in (0, size - 1):
        expert = prompts.experts[rows["task"][sample]]
        assert torch.equal(prefixes[3][:, sample], expert[1].transpose(1, 2))  # block 4 is the experts' second
        assert torch.equal(prefixes[1][:, sample], prompts.general[0, 1].transpose(1, 2))
    assert sorted(prefixes) == [0, 1, 2, 3, 4]


def test_a_new_expert_begins_as_the_one_before():
    batches = toy_batches(8)
    learner = feed(toy_learner("dualprompt"), batches[:4])
    experts = learner.model.prompts.experts
    before = experts.clone()
    assert all(torch.equal(expert, before[0]) for expert in before)
    prompts = learner.model.prompts
    assert not torch.equal(prompts.keys[0], prompts.keys[1])  # the keys begin on their own
    for name in ("exp_avg", "exp_avg_sq"):
        moment = learner.optimizer.state[experts][name]
        assert moment[0].abs().sum() > 0
        assert torch.equal(moment[0], moment[1])
    learner.observe(*batches[4])
    assert learner.model.prompts.entered.tolist() == [True, True] + 8 * [False]
    assert not torch.equal(experts[1], before[1])
    assert all(torch.equal(expert, experts[1]) for expert in experts[2:])
    learner.observe(*batches[0])  # back to the first task: experts that are to come follow, the second stays
    assert all(torch.equal(expert, experts[0]) for expert in experts[2:])
    assert not torch.equal(experts[0], experts[1])


def test_prediction_takes_the_nearest_expert_of_those_seen():
    learner = feed(toy_learner("dualprompt", **PLAIN), toy_batches(8))
    x, _, _ = toy_batches(1, seed=3)[0]
    prompts, vit = learner.model.prompts, learner.model.vit
    with torch.no_grad():
        first = vit.stem(learner.normalise(x))
        query = vit.trunk(first).pooled
        prompts.keys[5] = query[0]  # no task has this key yet
        nearest = cosines(query, prompts.keys)[:, :2].argmax(1)
        (prefixes,) = learner.given(learner.model, first, {})
        expected = vit.head(vit.trunk(first, prefixes))
    for sample, expert in enumerate(nearest):
        assert torch.equal(prefixes[2][:, sample], prompts.experts[expert, 0].transpose(1, 2))
    torch.testing.assert_close(learner.predict(x), expected)


def test_the_task_of_a_step_is_no_state():
    """It comes with the batch: a learner that was told another one before goes on alike."""
    batches = toy_batches(8)
    a, b = (feed(toy_learner("dualprompt"), batches[:5]) for _ in range(2))
    b.enter(0)
    feed(a, batches[5:]), feed(b, batches[5:])
    assert differences(a.state_dict(), b.state_dict()) == []


def test_more_tasks_than_experts():
    learner = feed(toy_learner("dualprompt", experts=2), toy_batches(4))
    before = snapshot(learner)
    for task in (2, -1):
        with pytest.raises(BadBatch, match=f"no expert for task {task}"):
            learner.observe(*toy_batches(1)[0][:2], task)
    assert differences(before, learner.state_dict()) == []
    with pytest.raises(BadRequest, match="--experts takes at least one for each of 5 tasks, not 3"):
        make_learner("dualprompt", make_stream("fashion"), weights="random", experts=3)


# -- Settings and state ------------------------------------------------------------------------------------------------


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
def test_impossible_settings(method):
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
def test_a_state_goes_with_its_frozen_weights(method):
    learner = feed(toy_learner(method), toy_batches(3))
    state = copy.deepcopy(learner.state_dict())
    toy_learner(method, seed=4).load_state_dict(state)
    other = toy_learner(method, heads=2)
    with torch.no_grad():
        other.model.vit.norm.bias += 1e-6
    other.frozen = digest(weight for weight in other.models.parameters() if not weight.requires_grad)
    with pytest.raises(BadCheckpoint, match="frozen weights are others"):
        other.load_state_dict(state)
