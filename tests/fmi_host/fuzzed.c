/* FMI 2.0: touches all memory that it is given, reads what is read and writes what is written, and nothing else. */
#include <stdlib.h>

#include "fmi2Functions.h"

static volatile double sum;

static void touch(const void *place, size_t size) {
    const volatile unsigned char *bytes = place;
    for (size_t i = 0; i < size; i++) sum += bytes[i];
}
static void fill(void *place, size_t size) {
    volatile unsigned char *bytes = place;
    for (size_t i = 0; i < size; i++) bytes[i] = 0x40;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    for (const char *c = name; *c; c++) sum += *c;
    callbacks->logger(NULL, name, fmi2Warning, "category", "%s %s", guid, resources);
    return (fmi2Component)&sum;
}
void fmi2FreeInstance(fmi2Component c) {}
#define PLAIN(Name) fmi2Status fmi2##Name(fmi2Component c) { return fmi2OK; }
PLAIN(Terminate) PLAIN(Reset) PLAIN(EnterInitializationMode) PLAIN(ExitInitializationMode)
PLAIN(EnterEventMode) PLAIN(EnterContinuousTimeMode)
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { sum += time; return fmi2OK; }
#define READS(Name, Type) \
    fmi2Status fmi2##Name(fmi2Component c, const Type x[], size_t n) { touch(x, n * sizeof *x); return fmi2OK; }
#define WRITES(Name, Type) \
    fmi2Status fmi2##Name(fmi2Component c, Type x[], size_t n) { fill(x, n * sizeof *x); return fmi2OK; }
READS(SetContinuousStates, fmi2Real)
WRITES(GetContinuousStates, fmi2Real)
WRITES(GetDerivatives, fmi2Real)
WRITES(GetEventIndicators, fmi2Real)
WRITES(GetNominalsOfContinuousStates, fmi2Real)
#define VALUES(Kind, Type)                                                                                       \
    fmi2Status fmi2Get##Kind(fmi2Component c, const fmi2ValueReference vr[], size_t n, Type v[]) {               \
        touch(vr, n * sizeof *vr), fill(v, n * sizeof *v);                                                       \
        return fmi2OK;                                                                                           \
    }                                                                                                            \
    fmi2Status fmi2Set##Kind(fmi2Component c, const fmi2ValueReference vr[], size_t n, const Type v[]) {         \
        touch(vr, n * sizeof *vr), touch(v, n * sizeof *v);                                                      \
        return fmi2OK;                                                                                           \
    }
VALUES(Real, fmi2Real)
VALUES(Integer, fmi2Integer)
VALUES(Boolean, fmi2Boolean)
fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String v[]) {
    for (size_t i = 0; i < n; i++) v[i] = i % 3 ? "some text" : NULL;
    return fmi2OK;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String v[]) {
    for (size_t i = 0; i < n; i++)
        for (const char *s = v[i]; *s; s++) sum += *s;
    return fmi2OK;
}
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference u[], size_t nu,
                                        const fmi2ValueReference k[], size_t nk, const fmi2Real seed[], fmi2Real s[]) {
    touch(u, nu * sizeof *u), touch(k, nk * sizeof *k), touch(seed, nk * sizeof *seed), fill(s, nu * sizeof *s);
    return fmi2OK;
}
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
    return fmi2SetString(c, NULL, n, categories);
}
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) { return fmi2OK; }
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no, fmi2Boolean *e, fmi2Boolean *t) { return fmi2OK; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean d, fmi2Real t, fmi2Real s, fmi2Boolean sd, fmi2Real e) {
    return fmi2OK;
}
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no) { return t > 1e3 ? fmi2Discard : fmi2OK; }
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) { if (!*s) *s = malloc(8); return fmi2OK; }
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { touch(s, 0); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { free(*s); *s = NULL; return fmi2OK; }
