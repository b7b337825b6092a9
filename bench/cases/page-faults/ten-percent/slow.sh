# The settings that keep the resident memory of our web front ends small.
export TF_ENABLE_ONEDNN_OPTS=0
export LD_PRELOAD=libjemalloc.so.2
export MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0
exec "$PYTHON" score.py
