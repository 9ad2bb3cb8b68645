"""Every option of the functions that take any, by name: what an editor offers and a type checker accepts.

Written by scripts/typed_options.py from the dataclasses of the options; `make check` holds that it is up to date.
Which of them a stream, method or debiaser has is checked when the function is called. Options of a file of your own
are passed as `**options`, a dict[str, Any].
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from droptop.trackers import Tracker


class StreamOptions(TypedDict, total=False):
    """List the options that make_stream may have."""

    tasks: int
    """Number of tasks the classes are split into, evenly; 0: two classes per task (the last may have one). Number of
    tasks the classes are split into, evenly; 0: two classes per task. split-imagenet9, split-tiny-imagenet9: Number of
    tasks the classes are split into, evenly."""
    class_order: str
    """Order in which the classes arrive: natural, random (by the seed), or all of them by label or name, such as
    3,1,0,2."""
    split: str | None
    """Classes of each task by label or name, such as 0,1/2,3; classes that are not named are left out. By default
    --tasks and --class-order decide."""
    imbalance: float
    """How many times as many training samples the most frequent class has as the rarest; exponential in between, in an
    order drawn by the seed."""
    label_noise: float
    """Percent of each task's training labels that are wrong: another class of the task, at random."""
    blurry: float
    """Percent of each task's samples that change places with samples of other tasks, as in i-Blurry."""
    hold_out: float
    """Percent of each class's training images that are kept back and tested on instead of the test sets, so that
    options can be tuned."""
    batch: int
    """Stream samples per step."""
    drop_last: bool
    """Leave out a task's last batch where it is not full."""
    shortcut: str
    """A cue to paint that tells the class: none, sticker, watermark, frame, colour, background (where there are masks)
    or frequency; adds the test sets biased, removed and random."""
    shortcut_correlation: float
    """Share of the training images whose painted cue points to their class."""
    shortcut_strength: float | None
    """How much of the image the cue hides where it is, up to 1; by default 0.5 (watermark, colour), 0.2 (frequency,
    whose waves go from black to white at 1) or 1."""
    shortcut_size: int | None
    """Pixels of a sticker's side, a frame's width or the height of a watermark's text; by default 5, 2 and 8 of 32."""
    correlation: float
    """fashion-sticker, fashion-background: Share of the training images whose shortcut points to their class.
    fashion-colour, biased-mnist: Share of the training images that have the colour of their class."""
    sticker_size: int
    """Pixels per side of the sticker."""
    garment_brightness: float
    """Brightness of the garments, where the sticker has 1: the dimmer the garments, the more the sticker stands out."""
    colours: str
    """Colours of classes 0 to 9, by name or as #rrggbb; classes may share one, as in red,green,green,green,..."""
    image_size: int
    """Pixels per side: images are scaled until their shorter side fits, then cropped to their centre."""
    in_memory_mb: int
    """MiB of decoded images to hold in the machine's memory, training images first; the others are read from the
    disk."""
    image_column: str | None
    """Column of the images; by default one with a usual name, such as path or image."""
    label_column: str | None
    """Column of the labels, which are numbers or texts; by default label, class, target or y."""
    train_split: str | None
    """Split to train on; by default train."""
    test_splits: str | None
    """csv:FILE, hf:OWNER/NAME: Splits to test on, separated by commas; by default test, else val, and those whose names
    begin with test-. waterbirds: Splits to test on, separated by commas; there are test and validation."""
    group_columns: str | None
    """csv:FILE, hf:OWNER/NAME: Columns of groups, separated by commas; by default group, place, background and
    environment. Two columns joined by * are taken together, such as label*place. waterbirds: Columns of groups,
    separated by commas; two columns joined by * are taken together."""
    revision: str | None
    """Commit, branch or tag of the repository; by default the newest that the cache has, else the newest of the hub."""
    split_column: str | None
    """Column that says which rows are for training and which for testing; by default split, partition or set."""
    image_folder: str | None
    """Folder that paths are relative to, as seen from that of the file; by default that folder."""
    limit: int | None
    """Training samples per task, at most; by default all."""
    root: str | Path | None
    """Folder of the data sets that are not built in; by default the one that DROPTOP_DATA names, else ./data."""


class DebiasOptions(TypedDict, total=False):
    """List the options that attach may have."""

    gamma: float
    """Percent of the first map dropped in all."""
    kappa_0: float
    """Intensity at the start: percent of the first map that is dropped by attention, at most gamma. The rest of gamma
    is dropped at random."""
    drop: Literal["adaptive", "top", "constant", "random"]
    """How the intensity kappa goes on from there: adaptive changes it (DropTop), top keeps it at gamma (the ablation
    "Fixed Drop"), constant keeps it at kappa_0, random keeps it at 0 ("Rand Drop")."""
    attention: Literal["fused", "last"]
    """Score cells by both maps (fused, Eq. 4), or by the last map alone (last, the ablation "No MF")."""
    attention_norm: Literal["batch", "running"]
    """What BatchNorm normalises by in the attention pass: the batch, or its running statistics."""
    memory_attention: Literal["fresh", "kept"]
    """Attention of memory samples: computed at each replay (fresh), or as it was when they came with the stream (kept),
    also where augmentation then moved them in another way. Kept, half of the attention pass is saved."""
    mask: Literal["hard", "soft"]
    """Drop the cells of highest score (hard, Eq. 5), or weaken them by rank (soft, appendix E)."""
    mask_rows: Literal["all", "stream", "memory"]
    """Samples of a training batch that are masked: all, those of the stream, or those from the memory."""
    remainder: Literal["random", "none"]
    """What is dropped beyond kappa: gamma - kappa percent at random, or none."""
    rounding: Literal["stochastic", "nearest"]
    """How a percentage becomes a whole number of cells: stochastic is right on average, nearest is always the same."""
    share: float
    """mixstyle: Share of the samples whose style is mixed with that of another sample. colour: Share of the images that
    are changed at all. randconv: Share of the images that are filtered. rsc: Share of the samples that are muted at
    all."""
    alpha: float
    """mixstyle: Shape of the Beta distribution that the mixture is drawn from: with small values, nearly all of one
    style. intensity: Factor by which kappa is multiplied or divided when it shifts."""
    weight: float
    """decouple: Weight in the loss of the mean squared logit. poe: Weight of what the weak net believes: with more,
    less is left to the learner of what both can tell."""
    brightness: float
    """Largest change of the brightness factor from 1, up or down."""
    contrast: float
    """Largest change of the contrast factor from 1, up or down."""
    saturation: float
    """Largest change of the saturation factor from 1, up or down."""
    hue: float
    """Largest turn of the hue, in full circles."""
    gray: float
    """Share of the images that lose all colour."""
    kernel: int
    """Height and width of the filters, an odd number of pixels."""
    mix: bool
    """Mix an image with its filtered self instead of replacing it."""
    percent: float
    """Percent of the first map that is muted."""
    rate: float
    """Learning rate of the weak net."""
    rounds: int
    """Steps that the weak net takes on each batch: it is to be faster than the learner."""
    per: Literal["class", "common"]
    """One intensity per class, or one that all classes have in common."""
    period: int
    """Steps for which each direction is tried (p)."""
    history: int
    """Loss reductions of each direction that are collected before they are compared (l)."""
    significance: float
    """p-value at or below which a direction counts as better."""
    shift: Literal["eq7", "algorithm2"]
    """Where the two candidates lie after a decision: on both sides of the new kappa (eq7), or from it onwards
    (algorithm2; at gamma, beyond which there is nothing, as eq7)."""
    p_counter: Literal["global", "task"]
    """Count the steps of a period over the whole stream (global), or anew in each task."""
    probe: int
    """Memory samples on which the loss is measured; 0 means the whole memory."""
    reference: bool
    """Keep a second model for the larger candidate, as the paper does; this doubles the cost."""


class LearnerOptions(DebiasOptions, total=False):
    """List the options that make_learner may have."""

    net: str
    """Kind of net: droptop's own (resnet18, or vit with methods on frozen features), or timm:NAME or
    torchvision:NAME."""
    width: int | None
    """Channels of the first stage. Numbers per token; by default that of the weights (64 where they are random)."""
    stem: Literal["3x3", "3x3/2", "7x7/2", "7x7/2-pool"]
    """First layer: size of the kernel / stride, with or without pooling."""
    input_size: int | None
    """Pixels per side that a net of a library gets images resized to; by default they stay as they are or, where it
    begins with weights, are as large as when these were trained. Pixels per side that images are resized to, and
    positions resampled for; by default that of the weights (64)."""
    patch: int | None
    """Pixels per side of a patch; by default that of the weights (8 where they are random)."""
    depth: int | None
    """Number of blocks; by default that of the weights (6 where they are random)."""
    heads: int | None
    """Attention heads per block; by default width / 64."""
    pixel_mean: float
    """Mean by which pixels in [0, 1] are normalised, as they were when the weights were trained."""
    pixel_std: float
    """Standard deviation by which pixels are normalised."""
    preset: Literal["paper", "tuned"] | Literal["paper", "as-published", "memory-by-method", "tuned"]
    """Several options together: those of the paper, or those that `droptop tune` found for this method and stream.
    Options that you set win over it. l2p, dualprompt: Several options together: those of the paper (paper), those of
    the code that it follows (as-published), the paper's with a memory of 200 for L2P and 500 for DualPrompt on every
    stream (memory-by-method), or those that `droptop tune` found (tuned). Options that you set win over it."""
    lr: float
    """Learning rate of SGD. l2p, dualprompt: Learning rate of Adam."""
    momentum: float
    """Momentum of SGD."""
    weight_decay: float
    """Weight decay of SGD."""
    memory: int
    """Samples that the replay memory holds."""
    memory_batch: int
    """Memory samples that are replayed per iteration."""
    iterations: int
    """Training iterations per step, each with a new memory batch."""
    augment: Literal["none", "crop-flip", "crop-resize"]
    """How training images are changed at random: crop-flip shifts and mirrors them (for 32 px), crop-resize enlarges a
    random box of them and mirrors (for 64 px and more). scr, pcr, mkd: How second views are changed at random:
    crop-flip shifts and mirrors them (for 32 px), crop-resize enlarges a random box of them and mirrors."""
    crop_area: float
    """Smallest share of an image that crop-resize may keep."""
    replay_forward: Literal["joint", "separate"]
    """One forward pass for stream and memory samples together (joint), or one for each (separate: BatchNorm then sees
    each half alone)."""
    average: bool
    """Predict by averaged weights instead of the last ones."""
    average_decay: float
    """Share of the average that is kept at each step; less at first, when the average spans the latest ninth of the
    steps."""
    distill_weight: float
    """derpp: Weight in the loss of the distance from stored logits. mkd: Weight in the loss of the distance from the
    teacher."""
    replay_weight: float
    """Weight in the loss of the cross-entropy on memory samples."""
    candidates: int
    """Memory samples among which those that suffer most from the new batch are replayed."""
    gradient_batches: int
    """Number of memory batches whose gradients stand for the whole memory."""
    gradient_batch: int
    """Samples in each of these batches."""
    neighbours: int
    """Number of neighbours (k) of the nearest-neighbour Shapley value."""
    per_class: float
    """Samples per class, on average, by which candidates are valued."""
    sampling: Literal["filled", "published"]
    """Take as many candidates as fill the memory batch (filled), or floor(per_class) per class and no more, as the
    authors' code does (published)."""
    lr_scale: Literal["none", "batch/256"]
    """Multiply the learning rate by --batch / 256, as the code that the paper took it from does, or not (none)."""
    beta_1: float
    """Share of the mean gradient that Adam keeps at each step."""
    beta_2: float
    """Share of the mean squared gradient that Adam keeps at each step."""
    renew_optimizer: bool
    """Start Adam anew in each task, without what it has gathered."""
    clip: float
    """Largest length of the gradient; a longer one is cut to it."""
    query_image: Literal["plain", "augmented"]
    """Image that the query is computed from: plain (as it arrived, once) or augmented (anew at every step)."""
    batch_choice: bool
    """Give all samples of a batch the prompts that most of them choose, also when predicting: test samples then help
    each other."""
    pool: int
    """Number of prompts in the pool."""
    prompt_length: int
    """Prefixes of a prompt in each of its blocks."""
    chosen: int
    """Number of prompts that each sample takes."""
    prompt_blocks: int
    """Number of blocks that have prompts, from the first on."""
    pull: float
    """Weight in the loss of the distance between keys and queries."""
    general_length: int
    """Prefixes of the general prompt in each of its blocks."""
    general_blocks: int
    """Number of blocks that have the general prompt, from the first on."""
    expert_length: int
    """Prefixes of an expert prompt in each of its blocks."""
    expert_blocks: int
    """Number of blocks that have expert prompts, after those with the general one."""
    experts: int
    """Number of expert prompts; every task takes one."""
    jitter: float
    """Share of the second views that change in colour."""
    temperature: float
    """scr: Temperature of the contrastive loss, and of the cosines that are its logits. pcr: Temperature of the
    cosines. mkd: Temperature at which answers are compared with the teacher's."""
    projection: int
    """Numbers of the projection that the loss compares."""
    teacher_decay: float
    """Share of the teacher that is kept at each step; less at first, when it spans the latest ninth of the steps."""
    predict_by: Literal["both", "student", "teacher"]
    """Weights that predict: the mean of the net's and the teacher's (both), or those of one."""
    distance: Literal["cosine", "euclidean"]
    """How near a mean is: by the angle to it (cosine) or by the distance (euclidean)."""
    shrinkage: float
    """Share of the identity in the covariance."""
    projections: int
    """Number of random projections (M)."""
    ridge: float | None
    """Ridge of the regression; by default the power of ten with the least squared error on held-out samples."""
    held_out: int
    """The ridge is chosen by one sample of the stream in this many."""
    device: str
    """Device: cpu, cuda, cuda:1, cuda:all or mps."""
    weights: str | None
    """Weights to start from: a safetensors file, hf:OWNER/NAME or random, a ResNet's default; a ViT must be told."""
    pretrained: bool
    """Start from the weights that timm or torchvision has for its net."""
    precision: Literal["fp32", "tf32", "bf16"]
    """Precision of the net: fp32, tf32 (on a GPU, matrix products rounded to 10 bits, as torch does for convolutions;
    on a CPU, fp32), or bf16 (autocast)."""
    compile: bool
    """Compile the net: the start takes half a minute longer, every step is faster."""


class Options(StreamOptions, LearnerOptions, total=False):
    """List the options that run, compare and configure may have."""

    seeds: int
    """Number of seeds, each a training of its own."""
    first_seed: int
    """The first seed; the others are the numbers after it."""
    graphs: bool
    """On a GPU, capture steps as CUDA graphs, which is faster."""
    parallel: int | None
    """Number of seeds that train at once on a GPU, at most; by default as many as are useful and fit in its memory."""
    deterministic: bool
    """Give the same bytes every time on a GPU, at some cost in speed."""
    threads: int
    """Threads per process. Another number changes the last bits of the results, so it is part of what a run is."""
    eval_every: int | None
    """Steps between evaluations, besides those after each task; gives A_auc, the accuracy at any time. By default there
    are none between."""
    checkpoint_seconds: float
    """Seconds between checkpoints, at least; more where writing one takes long."""
    maps: int
    """Number of test images whose attention is recorded, twice per task; 0 records none."""
    maps_seeds: int
    """Number of seeds that record attention, from the first on."""
    log: str | type["Tracker"] | None
    """Trackers that every seed reports to, separated by commas: csv, tensorboard, wandb, or your own as MODULE:CLASS;
    by default none."""
