/* FMI 3.0: keeps values of all types, to be set and read; a Binary comes back in reverse. Four values of each type. */
#include <stdlib.h>
#include <string.h>

#include "fmi3Functions.h"

#define STORE(Name, Type)                                                                                   \
    static Type store##Name[4];                                                                             \
    fmi3Status fmi3Get##Name(fmi3Instance c, const fmi3ValueReference vr[], size_t n, Type v[], size_t m) { \
        for (size_t i = 0; i < m; i++) v[i] = store##Name[i];                                               \
        return fmi3OK;                                                                                      \
    }                                                                                                       \
    fmi3Status fmi3Set##Name(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const Type v[], size_t m) { \
        for (size_t i = 0; i < m; i++) store##Name[i] = v[i];                                               \
        return fmi3OK;                                                                                      \
    }

STORE(Float64, fmi3Float64)
STORE(Float32, fmi3Float32)
STORE(Int8, fmi3Int8)
STORE(UInt8, fmi3UInt8)
STORE(Int16, fmi3Int16)
STORE(UInt16, fmi3UInt16)
STORE(Int32, fmi3Int32)
STORE(UInt32, fmi3UInt32)
STORE(Int64, fmi3Int64)
STORE(UInt64, fmi3UInt64)
STORE(Boolean, fmi3Boolean)

static char texts[4][100];
fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3String v[], size_t m) {
    for (size_t i = 0; i < m; i++) v[i] = texts[i];
    return fmi3OK;
}
fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3String v[], size_t m) {
    for (size_t i = 0; i < m; i++) strncpy(texts[i], v[i], 99);
    return fmi3OK;
}

static fmi3Byte binaries[4][100];
static const fmi3Byte *pointers[4];
static size_t sizes[4];
fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, size_t s[], fmi3Binary v[], size_t m) {
    for (size_t i = 0; i < m; i++) s[i] = sizes[i], v[i] = binaries[i];
    return fmi3OK;
}
fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const size_t s[], const fmi3Binary v[], size_t m) {
    for (size_t i = 0; i < m; i++) {
        sizes[i] = s[i];
        for (size_t k = 0; k < s[i]; k++) binaries[i][s[i] - 1 - k] = v[i][k];
    }
    return fmi3OK;
}

static fmi3Clock clocks[4];
fmi3Status fmi3GetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Clock v[]) {
    for (size_t i = 0; i < n; i++) v[i] = clocks[i];
    return fmi3OK;
}
fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Clock v[]) {
    for (size_t i = 0; i < n; i++) clocks[i] = v[i];
    return fmi3OK;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logs, fmi3InstanceEnvironment e, fmi3LogMessageCallback log) {
    if (logs) log(e, fmi3Warning, "greeting", "\x1b[2Jhello, 100 %s");
    return texts;
}
fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logs, fmi3Boolean events, fmi3Boolean early,
                                         const fmi3ValueReference r[], size_t n, fmi3InstanceEnvironment e,
                                         fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update) {
    return texts;
}
/* Ends a step early, or asks for the end, where the time says so. */
fmi3Status fmi3DoStep(fmi3Instance c, double time, double h, fmi3Boolean forgets, fmi3Boolean *event, fmi3Boolean *terminate,
                      fmi3Boolean *early, double *reached) {
    storeFloat64[0] += h;
    *event = fmi3False, *terminate = time >= 20, *early = 10 <= time && time < 20;
    *reached = *early ? time + h / 2 : time + h;
    return fmi3OK;
}
fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference u[], size_t nu, const fmi3ValueReference k[],
                                    size_t nk, const double seed[], size_t ns, double sensitivity[], size_t m) {
    for (size_t i = 0; i < m; i++) sensitivity[i] = seed[0] * (double)(i + 1) + (double)ns;
    return fmi3OK;
}
void fmi3FreeInstance(fmi3Instance c) {}
