#!/usr/bin/env bash
# The last readings of the paper, on a GPU: benchmarks/readings/run.sh DATA OUT [NAME ...], NAME being that of a study beside this
# file; by default all, most telling first. They run at the same time and share the GPU (with NVIDIA's MPS, where
# `nvidia-cuda-mps-control -d` has been started, about twice as fast); each goes on where it was stopped. OUT/csv/ then
# has their tables, and those of their seeds in OUT/csv/seeds/, finished or not. LIMIT=120 stops the sweeps after so many
# seconds. Weights of a ViT are read from weights/.
set -uo pipefail
export DROPTOP_DATA=${1:?folder of the data sets} OMP_NUM_THREADS=1
out=${2:?a folder for studies and tables}
shift 2
names=("$@")
[ $# -gt 0 ] || names=(as-named-cifar10 sticker mask-rows-tiny as-named-gss-cifar10 mask-rows-cifar10 cifar10-64px
    as-named-derpp-cifar10 iterations-tiny iterations-cifar10 prompts-tiny)
here=$(dirname "$0")
mkdir -p "$out/csv/seeds"
for name in "${names[@]}"; do
    timeout "${LIMIT:-0}" python3 -m droptop sweep "$here/$name.toml" --trust --out "$out/$name" > "$out/$name.log" 2>&1 &
done
wait
for name in "${names[@]}"; do
    by=data,method,debias
    case $name in mask-rows-*) by+=,mask_rows ;; sticker) by+=,mask_rows,remainder ;; prompts-*) by+=,preset ;; esac
    tail -1 "$out/$name.log"
    python3 -m droptop results "$out/$name" --by $by --export "$out/csv/$name.csv" > "$out/csv/$name.txt"
    python3 -m droptop results "$out/$name" --by $by,seed --export "$out/csv/seeds/$name.csv" > "$out/csv/seeds/$name.txt"
done
