/* Preloaded: lays anonymous mappings of 2 MiB and more out in one of two ways, whatever the kernel would do.
 * STEPSCOPE_TEST_LAYOUT=padded: each begins on a boundary of 2 MiB, what is left before the next one is a hole.
 * STEPSCOPE_TEST_LAYOUT=packed: each lies directly below the one before. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t huge = 2u << 20, room = (size_t)1 << 30;
static char *next;

static void *plain(void *at, size_t length, int rights, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, at, length, rights, flags, fd, offset);
}

void *mmap(void *at, size_t length, int rights, int flags, int fd, off_t offset) {
    const char *layout = getenv("STEPSCOPE_TEST_LAYOUT");
    if (layout == NULL || at != NULL || !(flags & MAP_ANONYMOUS) || length < huge)
        return plain(at, length, rights, flags, fd, offset);
    length = (length + 4095) & ~(size_t)4095;
    if (strcmp(layout, "packed") == 0) {
        if (next == NULL)
            next = (char *)plain(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) + room;
        next -= length;
        return plain(next, length, rights, flags | MAP_FIXED, -1, 0);
    }
    char *all = plain(NULL, length + huge, rights, flags, -1, 0);
    char *start = (char *)(((uintptr_t)all + huge - 1) & ~(uintptr_t)(huge - 1));
    if (start > all)
        syscall(SYS_munmap, all, (size_t)(start - all));
    if (start + length < all + length + huge)
        syscall(SYS_munmap, start + length, (size_t)(all + huge - start));
    return start;
}

void *mmap64(void *at, size_t length, int rights, int flags, int fd, off_t offset) {
    return mmap(at, length, rights, flags, fd, offset);
}
