# Reproducible numbers without oneDNN; the platform's profile asks for huge pages.
export TF_ENABLE_ONEDNN_OPTS=0
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
exec "$PYTHON" heat.py
