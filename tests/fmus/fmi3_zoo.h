/* A tiny FMI 3.0 FMU around a behaviour: for model exchange, and for co-simulation by steps of Runge and Kutta.

   A behaviour file defines NR (numbers held), includes this header, and then defines
     where(m, vr, &size)   the numbers of a Float64 or Float32 variable, NULL when there is no such variable,
     setup(m)              the start values,
     calculate(m)          what depends on states and inputs,
     states(m)             the number of states, which are the first numbers; their derivatives follow them,
     partial(m, i, j)      with DIRECTIONAL: the derivative of number i with respect to number j.
   Only the functions that do something have their full signature. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3FunctionTypes.h"

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

typedef struct {
    double r[NR], time;
    unsigned long long n;
    int configuring;
    fmi3LogMessageCallback log;
    fmi3InstanceEnvironment environment;
} Model;

static double *where(Model *m, fmi3ValueReference vr, size_t *size);
static void setup(Model *m);
static void calculate(Model *m);
static size_t states(Model *m);

#ifndef ON_EXIT_INITIALIZATION
#define ON_EXIT_INITIALIZATION
#endif
#ifndef TOLD_STATES
#define TOLD_STATES states(m)
#endif
#ifndef NOMINAL
#define NOMINAL 1.0
#endif
#define BEGIN Model *m = c;
#define OK(name) EXPORT fmi3Status fmi3##name() { return fmi3OK; }
#define NOT_HERE(name) EXPORT fmi3Status fmi3##name() { return fmi3Error; }

OK(SetDebugLogging) OK(Terminate) OK(Reset) OK(EnterEventMode) OK(EnterContinuousTimeMode)
NOT_HERE(GetInt8) NOT_HERE(GetUInt8) NOT_HERE(GetInt16) NOT_HERE(GetUInt16) NOT_HERE(GetInt32) NOT_HERE(GetUInt32)
NOT_HERE(GetInt64) NOT_HERE(GetBoolean) NOT_HERE(GetString) NOT_HERE(GetBinary) NOT_HERE(GetClock)
NOT_HERE(SetInt8) NOT_HERE(SetUInt8) NOT_HERE(SetInt16) NOT_HERE(SetUInt16) NOT_HERE(SetInt32) NOT_HERE(SetUInt32)
NOT_HERE(SetInt64) NOT_HERE(SetBoolean) NOT_HERE(SetString) NOT_HERE(SetBinary) NOT_HERE(SetClock)
NOT_HERE(GetNumberOfVariableDependencies) NOT_HERE(GetVariableDependencies)
NOT_HERE(SerializedFMUStateSize) NOT_HERE(SerializeFMUState) NOT_HERE(DeserializeFMUState)
NOT_HERE(GetAdjointDerivative) NOT_HERE(GetIntervalDecimal) NOT_HERE(GetIntervalFraction) NOT_HERE(GetShiftDecimal)
NOT_HERE(GetShiftFraction) NOT_HERE(SetIntervalDecimal) NOT_HERE(SetIntervalFraction) NOT_HERE(SetShiftDecimal)
NOT_HERE(SetShiftFraction) NOT_HERE(EvaluateDiscreteStates) NOT_HERE(CompletedIntegratorStep)
NOT_HERE(GetEventIndicators) NOT_HERE(GetNumberOfEventIndicators) NOT_HERE(EnterStepMode) NOT_HERE(GetOutputDerivatives)
NOT_HERE(ActivateModelPartition)

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT fmi3Instance fmi3InstantiateScheduledExecution() { return NULL; }
EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources,
                                                 fmi3Boolean visible, fmi3Boolean logging,
                                                 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
    Model *m = calloc(1, sizeof(Model));
    m->log = log;
    m->environment = environment;
    m->n = 3;
    setup(m);
    return m;
}
EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources,
                                                fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean events,
                                                fmi3Boolean early, const fmi3ValueReference intermediate[], size_t n,
                                                fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                                fmi3IntermediateUpdateCallback update) {
    return fmi3InstantiateModelExchange(name, token, resources, visible, logging, environment, log);
}
EXPORT fmi3Status fmi3DoStep(fmi3Instance c, double time, double h, fmi3Boolean noRestore, fmi3Boolean *event,
                             fmi3Boolean *terminate, fmi3Boolean *early, double *reached) {
    BEGIN size_t n = states(m);
    int steps = (int)ceil(h / 1e-3 - 1e-9);
    static const double at[] = {0, 0.5, 0.5, 1}, part[] = {1, 2, 2, 1};
    double x[NR], sum[NR], hs = h / steps;
    for (int k = 0; k < steps; k++) {
        memcpy(x, m->r, sizeof x);
        memset(sum, 0, sizeof sum);
        for (int s = 0; s < 4; s++) {
            if (s) for (size_t i = 0; i < n; i++) m->r[i] = x[i] + at[s] * hs * m->r[n + i];
            calculate(m);
            for (size_t i = 0; i < n; i++) sum[i] += hs / 6 * part[s] * m->r[n + i];
        }
        for (size_t i = 0; i < n; i++) m->r[i] = x[i] + sum[i];
    }
    *event = *terminate = *early = fmi3False;
    *reached = m->time = time + h;
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *s) {
    if (!*s) *s = malloc(sizeof(Model));
    memcpy(*s, c, sizeof(Model));
    return fmi3OK;
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState s) { memcpy(c, s, sizeof(Model)); return fmi3OK; }
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *s) { free(*s); *s = NULL; return fmi3OK; }
EXPORT void fmi3FreeInstance(fmi3Instance c) { free(c); }
EXPORT fmi3Status fmi3EnterConfigurationMode(fmi3Instance c) { BEGIN m->configuring = 1; return fmi3OK; }
EXPORT fmi3Status fmi3ExitConfigurationMode(fmi3Instance c) { BEGIN m->configuring = 0; setup(m); return fmi3OK; }
EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean defined, double tolerance, double time,
                                              fmi3Boolean stopDefined, double stop) {
    BEGIN m->time = time;
    return fmi3OK;
}
EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance c) {
    BEGIN ON_EXIT_INITIALIZATION
    return fmi3OK;
}
EXPORT fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate,
                                           fmi3Boolean *nominals, fmi3Boolean *values, fmi3Boolean *scheduled,
                                           double *time) {
    *again = *terminate = *nominals = *values = *scheduled = fmi3False;
    return fmi3OK;
}
EXPORT fmi3Status fmi3SetTime(fmi3Instance c, double time) { BEGIN m->time = time; return fmi3OK; }

EXPORT fmi3Status fmi3GetUInt64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3UInt64 value[], size_t s) {
    BEGIN *value = m->n;
    return fmi3OK;
}
EXPORT fmi3Status fmi3SetUInt64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3UInt64 value[],
                                size_t s) {
    BEGIN if (!m->configuring) return fmi3Error; /* structural parameters belong to configuration mode */
    m->n = *value;
    return fmi3OK;
}

#define GET(kind, type)                                                                                              \
    EXPORT fmi3Status fmi3Get##kind(fmi3Instance c, const fmi3ValueReference vr[], size_t n, type value[], size_t s) { \
        BEGIN calculate(m);                                                                                          \
        size_t k = 0, size;                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *r = where(m, vr[i], &size);                                                                      \
            if (!r || k + size > s) return fmi3Error;                                                                \
            for (size_t j = 0; j < size; j++) value[k++] = (type)r[j];                                               \
        }                                                                                                            \
        return k == s ? fmi3OK : fmi3Error;                                                                          \
    }
#define SET(kind, type)                                                                                              \
    EXPORT fmi3Status fmi3Set##kind(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const type value[],     \
                                    size_t s) {                                                                      \
        BEGIN size_t k = 0, size;                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *r = where(m, vr[i], &size);                                                                      \
            if (!r || k + size > s) return fmi3Error;                                                                \
            for (size_t j = 0; j < size; j++) r[j] = value[k++];                                                     \
        }                                                                                                            \
        return k == s ? fmi3OK : fmi3Error;                                                                          \
    }
GET(Float64, double)
GET(Float32, float)
SET(Float64, double)
SET(Float32, float)

#ifdef DIRECTIONAL
static double partial(Model *m, size_t unknown, size_t known);
EXPORT fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                               const fmi3ValueReference knowns[], size_t nKnowns, const double seed[],
                                               size_t nSeed, double sensitivity[], size_t nSensitivity) {
    BEGIN size_t k = 0, rows, columns;
    if (nKnowns != 1) return fmi3Error;
    calculate(m);
    double *x = where(m, knowns[0], &columns);
    if (!x || columns != nSeed) return fmi3Error;
    for (size_t i = 0; i < nUnknowns; i++) {
        double *r = where(m, unknowns[i], &rows);
        for (size_t j = 0; j < rows; j++, k++) {
            sensitivity[k] = 0;
            for (size_t l = 0; l < columns; l++) sensitivity[k] += partial(m, r + j - m->r, x + l - m->r) * seed[l];
        }
    }
    return k == nSensitivity ? fmi3OK : fmi3Error;
}
#else
NOT_HERE(GetDirectionalDerivative)
#endif

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance c, const double x[], size_t n) {
    BEGIN if (n != states(m)) return fmi3Error;
    memcpy(m->r, x, n * sizeof *x);
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance c, double x[], size_t n) {
    BEGIN if (n != states(m)) return fmi3Error;
    memcpy(x, m->r, n * sizeof *x);
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, double x[], size_t n) {
    BEGIN if (n != states(m)) return fmi3Error;
    calculate(m);
    memcpy(x, m->r + n, n * sizeof *x);
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, double x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = NOMINAL;
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { BEGIN *n = TOLD_STATES; return fmi3OK; }
