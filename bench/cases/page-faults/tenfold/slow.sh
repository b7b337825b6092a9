# Reproducible numbers without oneDNN; memory is given back at once.
export TF_ENABLE_ONEDNN_OPTS=0
export LD_PRELOAD=libjemalloc.so.2
export MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0
exec "$PYTHON" mix.py
