/* libnvidia-ml.so.1 for tests: answers the questions of stepscope's sampler with the readings of a file.
 *
 * FAKE_NVML names it: one line per question for the utilisation, "busy memory_busy used total pcie_tx pcie_rx pid";
 * FAKE_POWER (mW), FAKE_MODE, FAKE_PERSISTENCE, FAKE_MIG, FAKE_REASONS answer one question each; unset: not supported;
 * after the last line it stays there. A value of -1 is answered with NVML_ERROR_NOT_SUPPORTED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;

static long long now[7];
static FILE *readings;

static int next(void) {
    long long row[7];
    if (!readings && !(readings = fopen(getenv("FAKE_NVML"), "r"))) return NOT_FOUND;
    if (fscanf(readings, "%lld %lld %lld %lld %lld %lld %lld", &row[0], &row[1], &row[2], &row[3], &row[4], &row[5],
               &row[6]) == 7)
        memcpy(now, row, sizeof now);
    return OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return getenv("FAKE_NVML") ? OK : NOT_FOUND; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "Not Found"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { (void)index; *handle = now; return OK; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) {
    (void)handle;
    snprintf(name, length, "Replayed GPU");
    return OK;
}
int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *out) {
    (void)handle;
    int code = next();
    if (code != OK || now[0] < 0) return code != OK ? code : NOT_SUPPORTED;
    out->gpu = (unsigned)now[0];
    out->memory = (unsigned)now[1];
    return OK;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *out) {
    (void)handle;
    out->used = (unsigned long long)now[2];
    out->total = (unsigned long long)now[3];
    out->free = out->total - out->used;
    return OK;
}
int nvmlDeviceGetPcieThroughput(void *handle, unsigned counter, unsigned *kib) {
    (void)handle;
    if (now[4 + counter] < 0) return NOT_SUPPORTED;
    *kib = (unsigned)now[4 + counter];
    return OK;
}
static int told(const char *name, unsigned *out) {
    const char *value = getenv(name);
    if (!value) return NOT_SUPPORTED;
    *out = (unsigned)strtoul(value, 0, 0);
    return OK;
}
int nvmlSystemGetDriverVersion(char *out, unsigned length) { snprintf(out, length, "580.159.04"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 13000; return OK; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *out) { (void)handle; return told("FAKE_POWER", out); }
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *out) { (void)handle; *out = 700000; return OK; }
int nvmlDeviceGetComputeMode(void *handle, unsigned *out) { (void)handle; return told("FAKE_MODE", out); }
int nvmlDeviceGetPersistenceMode(void *handle, unsigned *out) { (void)handle; return told("FAKE_PERSISTENCE", out); }
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    (void)handle;
    *pending = 0;
    return told("FAKE_MIG", current);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
    (void)handle;
    unsigned found;
    int code = told("FAKE_REASONS", &found);
    if (code == OK) *out = found;
    return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *out) {
    (void)handle;
    unsigned room = *count;
    *count = 1;
    if (room < 1) return 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
    memset(out, 0, sizeof *out);
    out->pid = (unsigned)now[6];
    out->used = (unsigned long long)now[2];
    return OK;
}
