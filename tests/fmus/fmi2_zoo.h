/* A tiny FMI 2.0 model exchange FMU around a behaviour.

   A behaviour file defines NV (number of Reals, value references 0 .. NV-1), NX, the lists STATES and DERIVATIVES
   (value references) and START (values by reference), includes this header, and then defines calculate(), which
   fills what depends on states and inputs. With DIRECTIONAL defined it also defines partial(). The ON_... macros are
   statements that run inside the FMI function of that name; `m` is the model. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2Functions.h"

typedef struct {
    fmi2Real r[NV];
    fmi2Real time;
    fmi2CallbackFunctions callbacks;
    char name[100];
    int dead; /* once set, every function answers an error */
} Model;

static void calculate(Model *m);

#define SAY(status, ...) \
    m->callbacks.logger(m->callbacks.componentEnvironment, m->name, status, "logStatusError", __VA_ARGS__)
#define BEGIN Model *m = (Model *)c; if (m->dead) return fmi2Error;

#ifndef ON_INSTANTIATE
#define ON_INSTANTIATE
#endif
#ifndef ON_FREE
#define ON_FREE
#endif
#ifndef ON_EXIT_INITIALIZATION
#define ON_EXIT_INITIALIZATION
#endif
#ifndef ON_NEW_DISCRETE_STATES
#define ON_NEW_DISCRETE_STATES
#endif
#ifndef ON_EVENT_MODE
#define ON_EVENT_MODE
#endif
#ifndef ON_CONTINUOUS_TIME_MODE
#define ON_CONTINUOUS_TIME_MODE
#endif
#ifndef ON_COMPLETED_STEP
#define ON_COMPLETED_STEP
#endif
#ifndef ON_GET_REAL
#define ON_GET_REAL
#endif
#ifndef ON_SET_REAL
#define ON_SET_REAL
#endif
#ifndef ON_GET_STATES
#define ON_GET_STATES
#endif
#ifndef ON_SET_STATES
#define ON_SET_STATES
#endif
#ifndef ON_GET_DERIVATIVES
#define ON_GET_DERIVATIVES
#endif
#ifndef ON_DIRECTIONAL
#define ON_DIRECTIONAL
#endif
#ifndef ON_GET_NOMINALS
#define ON_GET_NOMINALS
#endif
#ifndef NOMINAL
#define NOMINAL 1.0
#endif

#if NX > 0
static const fmi2ValueReference states[] = STATES, derivatives[] = DERIVATIVES;
#else
static const fmi2ValueReference states[1], derivatives[1];
#endif
static const fmi2Real start[NV] = START;

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
    return fmi2OK;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    Model *m = callbacks->allocateMemory(1, sizeof(Model));
    m->callbacks = *callbacks;
    strncpy(m->name, name, sizeof m->name - 1);
    memcpy(m->r, start, sizeof start);
    ON_INSTANTIATE
    return m;
}
void fmi2FreeInstance(fmi2Component c) {
    Model *m = c;
    ON_FREE
    m->callbacks.freeMemory(m);
}
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean defined, fmi2Real tolerance, fmi2Real time,
                               fmi2Boolean stopDefined, fmi2Real stop) {
    BEGIN m->time = time;
    return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { BEGIN return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    BEGIN ON_EXIT_INITIALIZATION
    return fmi2OK;
}
fmi2Status fmi2Terminate(fmi2Component c) { BEGIN return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { BEGIN return fmi2OK; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
    BEGIN calculate(m);
    ON_GET_REAL
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= NV) return fmi2Error;
        value[i] = m->r[vr[i]];
    }
    return fmi2OK;
}
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
    BEGIN
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= NV) return fmi2Error;
        m->r[vr[i]] = value[i];
    }
    ON_SET_REAL
    return fmi2OK;
}
static fmi2Integer integers[8] = {3};
static fmi2Boolean booleans[8];
fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer value[]) {
    for (size_t i = 0; i < n; i++) value[i] = integers[vr[i] % 8];
    return fmi2OK;
}
fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer value[]) {
    for (size_t i = 0; i < n; i++) integers[vr[i] % 8] = value[i];
    return fmi2OK;
}
fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean value[]) {
    for (size_t i = 0; i < n; i++) value[i] = booleans[vr[i] % 8];
    return fmi2OK;
}
fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean value[]) {
    for (size_t i = 0; i < n; i++) booleans[vr[i] % 8] = value[i];
    return fmi2OK;
}
fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[]) {
    return fmi2Error;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[]) {
    return fmi2OK;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) { return fmi2Error; }
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { return fmi2Error; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { return fmi2Error; }
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n) { return fmi2Error; }
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n) { return fmi2Error; }
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte b[], size_t n, fmi2FMUstate *s) {
    return fmi2Error;
}

#ifdef DIRECTIONAL
static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known);
#endif
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nUnknown,
                                        const fmi2ValueReference known[], size_t nKnown, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    BEGIN ON_DIRECTIONAL
#ifdef DIRECTIONAL
    if (nUnknown == 0 || nKnown == 0) return fmi2Error; /* as Dymola does */
    calculate(m);
    for (size_t i = 0; i < nUnknown; i++) {
        sensitivity[i] = 0;
        for (size_t j = 0; j < nKnown; j++) sensitivity[i] += partial(m, unknown[i], known[j]) * seed[j];
    }
    return fmi2OK;
#else
    return fmi2Error;
#endif
}

fmi2Status fmi2EnterEventMode(fmi2Component c) {
    BEGIN ON_EVENT_MODE
    return fmi2OK;
}
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
    BEGIN memset(info, 0, sizeof *info);
    ON_NEW_DISCRETE_STATES
    return fmi2OK;
}
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) {
    BEGIN ON_CONTINUOUS_TIME_MODE
    return fmi2OK;
}
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no, fmi2Boolean *event, fmi2Boolean *terminate) {
    BEGIN *event = *terminate = fmi2False;
    ON_COMPLETED_STEP
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) {
    BEGIN m->time = time;
    return fmi2OK;
}
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
    BEGIN
    if (n != NX) return fmi2Error;
    for (size_t i = 0; i < n; i++) m->r[states[i]] = x[i];
    ON_SET_STATES
    return fmi2OK;
}
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    BEGIN ON_GET_STATES
#ifdef NO_CHECK_OF_NUMBER
    n = NX;
#endif
    if (n != NX) {
        SAY(fmi2Error, "%d states asked for, %d there are", (int)n, NX);
        return fmi2Error;
    }
    for (size_t i = 0; i < n; i++) x[i] = m->r[states[i]];
    return fmi2OK;
}
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real x[], size_t n) {
    BEGIN
    if (n != NX) return fmi2Error;
    calculate(m);
    ON_GET_DERIVATIVES
    for (size_t i = 0; i < n; i++) x[i] = m->r[derivatives[i]];
    return fmi2OK;
}
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n) {
    BEGIN
#ifdef INDICATORS
    const fmi2Real indicators[] = INDICATORS;
    if (n != sizeof indicators / sizeof *indicators) return fmi2Error;
    memcpy(z, indicators, sizeof indicators);
#endif
    return fmi2OK;
}
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    BEGIN ON_GET_NOMINALS
    for (size_t i = 0; i < n; i++) x[i] = NOMINAL;
    return fmi2OK;
}
