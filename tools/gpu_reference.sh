#!/bin/bash
# Pretrain a large ALBERT on one GPU, without a network, in 9 minutes from start to end, compilation included:
#   tools/gpu_reference.sh KIT OUT [MINUTES] [NAME=VALUE ...]
# KIT is the folder of parcels that `python -m tools.gpu_kit pack` wrote, OUT a folder for log and checkpoints.
# NAME=VALUE changes a setting of the model. A batch that does not fit the GPU is halved and started again.
set -euo pipefail
kit=$1 out=$2 minutes=${3:-9}
cd "$(dirname "$0")/.."
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat "$kit"/part-* | tar xJ -C "$work"
for wheel in "$work"/wheels/*.whl; do
    if [ -f "$wheel" ]; then python3 -m zipfile -e "$wheel" "$work/packages"; fi
done
export PYTHONPATH=$PWD:$work/packages KERAS_BACKEND=jax JAX_COMPILATION_CACHE_DIR=$work/compiled EMBRYO_DATA=$work
echo "unpacked after $SECONDS s"
for batch in 512 256 128 64; do
    left=$(python3 -c "print($minutes - ($SECONDS + ${RESERVE:-25}) / 60)")  # the last seconds measure and write
    status=0
    python3 -m pretrain albert-base --corpus "$work/corpus" --steps 1000000 --run "$work/runs/albert-large-reference" --set \
        hidden_size=640 num_attention_heads=10 intermediate_size=2560 embedding_size=128 vocab_size=8000 \
        max_position_embeddings=128 sequence_length=128 batch_size=$batch compute_dtype=bfloat16 \
        position_initializer_range=0.2 decay_positions=false masked_share=0.3 sentence_order_weight=0.5 hidden_act=gelu \
        optimizer=muon beta_2=0.98 learning_rate=0.002 warmup_steps=300 \
        minutes="$left" decay_minutes="$(python3 -c "print($left / 4)")" \
        save_every=0 state_every=1000000 log_every=20 heldout_sequences=256 measured_sequences=256 \
        checkpoint_dtype=float16 "${@:4}" 2>&1 | tr '\r' '\n' | tee "$out/pretrain.txt" | tail -n 3 || status=$?
    if [ $status = 0 ] || ! grep -q RESOURCE_EXHAUSTED "$out/pretrain.txt"; then break; fi
    rm -rf "$work/runs"
done
[ $status = 0 ]
python3 -m tools.gpu_kit collect "$work/runs/albert-large-reference" "$out"
echo "done after $SECONDS s"
