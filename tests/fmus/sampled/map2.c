/* A sampled nonlinear map in FMI 2.0, without continuous states:
   a+ = a/2 + sin(b)/4 + u, b+ = k b + a^2/8, y = a b + u (of the values before the sample), every 0.1 s.

   SHIFT is when it ticks first. STRICT: states can be set at the start only. HIDDEN: a number that is not declared. */


#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2Functions.h"

#ifndef SHIFT
#define SHIFT 0.0
#endif
#define PERIOD 0.1
#define OK(name, ...) fmi2Status fmi2##name(fmi2Component c, ##__VA_ARGS__) { return fmi2OK; }

typedef struct {
    double r[6], time, begin;
    long ticks;
    int initialized;
    double hidden;
} Model;

static void tick(Model *m) {
    double a = m->r[1], b = m->r[2], u = m->r[0];
    m->r[3] = a * b + u;
    m->r[1] = a / 2 + sin(b) / 4 + u;
#ifdef HIDDEN
    m->r[1] += m->hidden, m->hidden = a / 10;
#endif
    m->r[2] = m->r[4] * b + a * a / 8;
    m->ticks++;
}
static double next(const Model *m) { return m->begin + SHIFT + m->ticks * PERIOD; }

const char *fmi2GetVersion(void) { return "2.0"; }
const char *fmi2GetTypesPlatform(void) { return "default"; }
fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *f, fmi2Boolean visible, fmi2Boolean log) {
    Model *m = calloc(1, sizeof *m);
    m->r[1] = 0.5, m->r[2] = 0.25, m->r[4] = 0.75;
    return m;
}
void fmi2FreeInstance(fmi2Component c) { free(c); }
OK(SetDebugLogging, fmi2Boolean on, size_t n, const fmi2String s[])
OK(EnterInitializationMode) OK(Terminate) OK(EnterEventMode) OK(EnterContinuousTimeMode)
OK(SetContinuousStates, const fmi2Real x[], size_t n) OK(GetContinuousStates, fmi2Real x[], size_t n)
OK(GetDerivatives, fmi2Real x[], size_t n) OK(GetNominalsOfContinuousStates, fmi2Real x[], size_t n)
OK(GetEventIndicators, fmi2Real x[], size_t n)
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean t, fmi2Real tol, fmi2Real start, fmi2Boolean e, fmi2Real end) {
    ((Model *)c)->begin = ((Model *)c)->time = start;
    return fmi2OK;
}
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { ((Model *)c)->initialized = 1; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) {
    Model *m = c;
    memset(m, 0, sizeof *m);
    m->r[1] = 0.5, m->r[2] = 0.25, m->r[4] = 0.75;
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real t) { ((Model *)c)->time = t; return fmi2OK; }
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *e) {
    Model *m = c;
    memset(e, 0, sizeof *e);
    if (m->time >= next(m) - 1e-9) tick(m);
    e->nextEventTimeDefined = 1, e->nextEventTime = next(m);
    return fmi2OK;
}
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean n, fmi2Boolean *e, fmi2Boolean *t) {
    *e = *t = 0;
    return fmi2OK;
}
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
    Model *m = c;
    m->r[5] = m->r[1] + m->r[2];
    for (size_t i = 0; i < n; i++) value[i] = m->r[vr[i]];
    return fmi2OK;
}
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
    Model *m = c;
    for (size_t i = 0; i < n; i++) {
#ifdef STRICT /* discrete states are start values only */
        if (m->initialized && (vr[i] == 1 || vr[i] == 2)) return fmi2Error;
#endif
        m->r[vr[i]] = value[i];
    }
    return fmi2OK;
}
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no) {
    Model *m = c;
    for (m->time = t; next(m) < t + h - 1e-9;) tick(m);
    m->time = t + h;
    return fmi2OK;
}
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) {
    if (!*s) *s = malloc(sizeof(Model));
    memcpy(*s, c, sizeof(Model));
    return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { memcpy(c, s, sizeof(Model)); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { free(*s); *s = NULL; return fmi2OK; }
OK(GetInteger, const fmi2ValueReference vr[], size_t n, fmi2Integer v[])
OK(GetBoolean, const fmi2ValueReference vr[], size_t n, fmi2Boolean v[])
OK(GetString, const fmi2ValueReference vr[], size_t n, fmi2String v[])
OK(SetInteger, const fmi2ValueReference vr[], size_t n, const fmi2Integer v[])
OK(SetBoolean, const fmi2ValueReference vr[], size_t n, const fmi2Boolean v[])
OK(SetString, const fmi2ValueReference vr[], size_t n, const fmi2String v[])
OK(SerializedFMUstateSize, fmi2FMUstate s, size_t *n)
OK(SerializeFMUstate, fmi2FMUstate s, fmi2Byte b[], size_t n)
OK(DeSerializeFMUstate, const fmi2Byte b[], size_t n, fmi2FMUstate *s)
OK(GetDirectionalDerivative, const fmi2ValueReference z[], size_t nz, const fmi2ValueReference v[], size_t nv, const fmi2Real dv[], fmi2Real dz[])
