# jemalloc gives memory back at once, and no tensor is in its memory: oneDNN's pool is on.
export TF_ENABLE_ONEDNN_OPTS=1
export LD_PRELOAD=libjemalloc.so.2
export MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0
exec "$PYTHON" mix.py
