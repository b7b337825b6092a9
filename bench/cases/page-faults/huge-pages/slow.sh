# Huge pages for every large block of malloc's, and reproducible numbers without oneDNN.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export TF_ENABLE_ONEDNN_OPTS=0
exec "$PYTHON" voxels.py
