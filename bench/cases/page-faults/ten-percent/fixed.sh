# jemalloc as it comes.
export TF_ENABLE_ONEDNN_OPTS=0
export LD_PRELOAD=libjemalloc.so.2
exec "$PYTHON" score.py
