#!/usr/bin/env bash
# The rows of REPRODUCTION.md that want a GPU, most telling first. Each command goes on where it was stopped, so this can
# be run in parts: benchmarks/ledger.sh DATA [OUT [VIT]], with CIFAR-10, CIFAR-100 and Tiny-ImageNet-9 below DATA and the
# weights of a ViT for the prompt learners.
set -euo pipefail
root=${1:?folder of the data sets}
out=${2:-runs/ledger}
weights=${3:-}
gpu=(--root "$root" --device cuda --precision bf16)
tiny=split-tiny-imagenet9

droptop paper table1 "${gpu[@]}" --data split-cifar10,$tiny --methods er --seeds 20 --out "$out/er"
droptop paper readings "${gpu[@]}" --methods er --seeds 10 --out "$out/readings"
droptop paper table1 "${gpu[@]}" --data split-cifar10,split-cifar100,$tiny --seeds 10 --out "$out/table1"
droptop paper ablation "${gpu[@]}" --data split-cifar10,split-cifar100,$tiny --seeds 10 --out "$out/table1"
droptop paper ablation-unbiased "${gpu[@]}" --data $tiny --seeds 10 --out "$out/table1"
# Of its rows, ASER with one candidate per class is to be run: it came after the others were measured.
droptop paper readings "${gpu[@]}" --methods derpp,mir,gss,aser --seeds 10 --out "$out/readings-methods"
for recipe in design validity sensitivity; do
    droptop paper $recipe "${gpu[@]}" --seeds 10 --out "$out/$recipe"
done
droptop paper shortcut-mnist "${gpu[@]}" --seeds 10 --out "$out/shortcut-mnist"
for recipe in shortcut-impact maps histogram; do
    droptop paper $recipe "${gpu[@]}" --data $tiny --seeds 5 --out "$out/$recipe"
done
# Table 4 with the settings of the main tables, as it was first measured here; the recipe has those of appendix B.
droptop paper shortcut-impact "${gpu[@]}" --data $tiny --seeds 5 --set lr=0.1,memory=500 --out "$out/shortcut-impact-lr01"
droptop paper features "${gpu[@]}" --data split-cifar10 --seeds 10 --out "$out/features"
droptop paper overhead "${gpu[@]}" --data $tiny --out "$out/overhead"
if [ -n "$weights" ]; then
    droptop paper table2 "${gpu[@]}" --data $tiny --weights "$weights" --seeds 5 --out "$out/table2"
    droptop paper table-f "${gpu[@]}" --data split-cifar10 --weights "$weights" --seeds 5 --out "$out/table-f"
    # To be run: what the code that the paper follows does besides, and the other reading of the memories.
    droptop paper readings-prompts "${gpu[@]}" --data split-cifar10,$tiny --weights "$weights" --seeds 5 --out "$out/readings-prompts"
fi
