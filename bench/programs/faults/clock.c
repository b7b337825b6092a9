/* Preloaded: the clock of the day goes back by an hour from the moment on at which the file FAULT_CLOCK is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int jumped(void) {
    static int over;
    const char *file = getenv("FAULT_CLOCK");
    if (!over && file && access(file, F_OK) == 0) over = 1;
    return over;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, at);
    if (result == 0 && clock == CLOCK_REALTIME && jumped()) at->tv_sec -= 3600;
    return result;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return result;
}
