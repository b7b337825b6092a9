/* Preloaded: serves allocations of 512 KiB and more from a range of its own, laid out in one of two ways.
 * STEPSCOPE_LAYOUT=padded: each begins on a boundary of 2 MiB, what is left before the next one is a hole.
 * STEPSCOPE_LAYOUT=packed: each lies directly above the one before.
 * STEPSCOPE_LAYOUT_HUGE=1: huge pages are asked for (MADV_HUGEPAGE). What is freed is unmapped at once, and used again.
 * STEPSCOPE_THP=off: the process gets no huge pages; advised: only where it asks; always: it asks for all large mappings
 * that the program or a library makes (those of malloc ask by GLIBC_TUNABLES=glibc.malloc.hugetlb=1). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static const size_t least = 512u << 10, page = 4096, huge = 2u << 20, room = (size_t)1 << 40;
static char *const base = (char *)0x100000000000; /* far from where the kernel puts mappings by itself */
enum { MOST = 1 << 16 };
static struct { size_t start, length; } held[MOST]; /* by start; offsets from base */
static size_t count;
static int mode = -1, wants_huge; /* 0: off, 1: padded, 2: packed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void learn(void) {
    const char *layout = getenv("STEPSCOPE_LAYOUT"), *wanted = getenv("STEPSCOPE_LAYOUT_HUGE");
    wants_huge = wanted != NULL && *wanted == '1';
    mode = layout == NULL ? 0 : strcmp(layout, "padded") == 0 ? 1 : strcmp(layout, "packed") == 0 ? 2 : 0;
}

static int ours(const void *at) { return (const char *)at >= base && (const char *)at < base + room; }

static size_t index_of(size_t start) { /* of the first that does not begin before */
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (held[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *take(size_t size) {
    size_t grain = mode == 1 ? huge : page, length = (size + page - 1) & ~(page - 1), at = 0, i;
    void *made = MAP_FAILED;
    pthread_mutex_lock(&lock);
    for (i = 0; i < count && held[i].start < at + length; i++) /* the first hole that is large enough */
        at = (held[i].start + held[i].length + grain - 1) & ~(grain - 1);
    if (count < MOST)
        made = mmap(base + at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made != MAP_FAILED) {
        memmove(&held[i + 1], &held[i], (count - i) * sizeof held[0]);
        held[i].start = at;
        held[i].length = length;
        count++;
        if (wants_huge)
            madvise(made, length, MADV_HUGEPAGE);
    }
    pthread_mutex_unlock(&lock);
    return made == MAP_FAILED ? NULL : made;
}

static size_t length_of(void *at) {
    pthread_mutex_lock(&lock);
    size_t i = index_of((size_t)((char *)at - base)), length = i < count ? held[i].length : 0;
    pthread_mutex_unlock(&lock);
    return length;
}

static int wanted(size_t size) {
    if (mode < 0)
        learn();
    return mode && size >= least;
}

void free(void *at) {
    if (!ours(at)) {
        __libc_free(at);
        return;
    }
    int before = errno;
    pthread_mutex_lock(&lock);
    size_t i = index_of((size_t)((char *)at - base));
    munmap(at, held[i].length);
    memmove(&held[i], &held[i + 1], (count - i - 1) * sizeof held[0]);
    count--;
    pthread_mutex_unlock(&lock);
    errno = before;
}

void *malloc(size_t size) {
    void *made = wanted(size) ? take(size) : NULL;
    return made != NULL ? made : __libc_malloc(size);
}

void *calloc(size_t many, size_t size) {
    size_t all;
    void *made = !__builtin_mul_overflow(many, size, &all) && wanted(all) ? take(all) : NULL;
    return made != NULL ? made : __libc_calloc(many, size);
}

void *memalign(size_t boundary, size_t size) {
    void *made = boundary <= page && wanted(size) ? take(size) : NULL;
    return made != NULL ? made : __libc_memalign(boundary, size);
}

void *aligned_alloc(size_t boundary, size_t size) { return memalign(boundary, size); }

int posix_memalign(void **out, size_t boundary, size_t size) {
    void *made = memalign(boundary, size);
    if (made == NULL)
        return ENOMEM;
    *out = made;
    return 0;
}

void *realloc(void *at, size_t size) {
    if (!ours(at))
        return __libc_realloc(at, size);
    size_t length = length_of(at);
    void *made = malloc(size);
    if (made != NULL) {
        memcpy(made, at, size < length ? size : length);
        free(at);
    }
    return made;
}

size_t malloc_usable_size(void *at) {
    static size_t (*other)(void *);
    if (ours(at))
        return length_of(at);
    if (other == NULL)
        other = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return other(at);
}

enum { ONLY_ADVISED = 2 }; /* PR_THP_DISABLE_EXCEPT_ADVISED, Linux 6.18 */
static int asks;

__attribute__((constructor)) static void begin(void) {
    const char *pages = getenv("STEPSCOPE_THP");
    if (pages == NULL)
        return;
    asks = strcmp(pages, "always") == 0;
    if (strcmp(pages, "off") == 0)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    else if (strcmp(pages, "advised") == 0)
        prctl(PR_SET_THP_DISABLE, 1, ONLY_ADVISED, 0, 0);
}

void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    void *made = (void *)syscall(SYS_mmap, at, length, protection, flags, file, offset);
    int plain = MAP_PRIVATE | MAP_ANONYMOUS;
    if (asks && made != MAP_FAILED && length >= huge && (flags & plain) == plain && (protection & PROT_WRITE)) {
        int before = errno;
        madvise(made, length, MADV_HUGEPAGE);
        errno = before;
    }
    return made;
}

void *mmap64(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    return mmap(at, length, protection, flags, file, offset);
}
