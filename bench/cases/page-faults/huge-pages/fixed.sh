# The same huge pages; the C library's malloc keeps what is freed.
export TF_ENABLE_ONEDNN_OPTS=0
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184
exec "$PYTHON" heat.py
