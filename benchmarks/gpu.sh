#!/usr/bin/env bash
# Checks and times everything that needs a GPU, in one call of some ten minutes: benchmarks/gpu.sh FOLDER [WORKERS]
# Tests first (kernels against torch's own, graphs against eager steps, seeds together against one by one, resuming,
# the learners' contracts), then milliseconds a step at CIFAR-10's shapes (ResNet-18 of width 64, 32 + 32 images, a
# memory of 500), where they go, and the prompt learners with ViT-B/16. With pytest-xdist the tests share the GPU among
# some WORKERS; what is timed has it alone.
set -uo pipefail
out=${1:?a folder for the results}
mkdir -p "$out"
cifar=(--device cuda --width 64 --stem 3x3 --memory 500 --augment crop-flip)
python3 -m pytest tests -m gpu -q -W default -p no:cacheprovider ${2:+-n "$2"} 2>&1 | tee "$out/tests.txt" | tail -15
paper=er,derpp,mir,gss,aser
bench() {
    local name=$1
    shift
    python3 -m droptop bench "${cifar[@]}" "$@" --out "$out/$name.json" 2> "$out/$name.err" | tee "$out/$name.txt"
}
bench graphs --methods $paper --engines graphs --seeds 1,5,10,20 --precision bf16 --probe 64 --steps 18
bench whole-probe --methods er --engines graphs --seeds 1,5,20 --precision bf16 --no-baseline --steps 18
bench tf32 --methods er --engines graphs --seeds 1,5 --precision tf32 --probe 64 --steps 18 --no-baseline
bench eager --methods $paper --engines eager --seeds 1 --precision bf16 --probe 64 --steps 12 --no-baseline
bench compiled --methods er --engines graphs --seeds 1,5 --precision bf16 --probe 64 --steps 18 --compile --no-baseline
python3 benchmarks/kernels.py > "$out/kernels.txt" 2> "$out/kernels.err"
python3 benchmarks/parts.py 1 10 20 2> "$out/parts.err" | tee "$out/parts.txt"
python3 benchmarks/vit.py --out "$out/vit.json" | tee "$out/vit.txt"
