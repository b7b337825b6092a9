# Reproducible numbers without oneDNN; jemalloc keeps what it was given for ten seconds.
export TF_ENABLE_ONEDNN_OPTS=0
export LD_PRELOAD=libjemalloc.so.2
exec "$PYTHON" mix.py
