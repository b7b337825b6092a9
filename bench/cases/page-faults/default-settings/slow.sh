# Reproducible numbers without oneDNN.
export TF_ENABLE_ONEDNN_OPTS=0
exec "$PYTHON" fields.py
