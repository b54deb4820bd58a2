/* A tiny FMI 1.0 FMU, for model exchange and for co-simulation, around a behaviour.

   A behaviour file defines MODEL (the identifier), NV (number of Reals, value references 0 .. NV-1), NX, the lists
   STATES and DERIVATIVES (value references), START (values by reference) and, when they differ from STATES, the
   references it TELLS; includes this header, and then defines calculate(). ON_... macros are statements that run inside
   the function of that name; `m` is the model. A co-simulation step is a hundred steps of the explicit midpoint rule. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi1Functions.h"

#define GLUED(a, b) a##_fmi##b
#define GLUE(a, b) GLUED(a, b)
#define F(name) GLUE(MODEL, name)
#define TEXT_OF(a) #a
#define TEXT(a) TEXT_OF(a)

typedef struct {
    double r[NV], time;
    int whole[4];
    fmi1CallbackFunctions callbacks;
    char name[100];
    int initialized, talkative;
} Model;

static void calculate(Model *m);

#ifndef TELLS
#define TELLS STATES
#endif
#ifndef ON_INITIALIZE
#define ON_INITIALIZE
#endif
#ifndef ON_EVENT_UPDATE
#define ON_EVENT_UPDATE
#endif
#ifndef ON_GET_DERIVATIVES
#define ON_GET_DERIVATIVES
#endif
#ifndef ON_GET_REFERENCES
#define ON_GET_REFERENCES
#endif
#ifndef ON_SET_REAL
#define ON_SET_REAL
#endif
#ifndef NOMINAL
#define NOMINAL 1.0
#endif

static const fmi1ValueReference states[] = STATES, derivatives[] = DERIVATIVES, told[] = TELLS;
static const double start[NV] = START;

#define SAY(status, ...) m->callbacks.logger(m, m->name, status, "", __VA_ARGS__)
#define BEGIN Model *m = (Model *)c;

static Model *make(const char *name, const char *guid, fmi1CallbackFunctions callbacks, int talkative) {
    if (strcmp(guid, "{" TEXT(MODEL) "}")) return NULL;
    Model *m = callbacks.allocateMemory(1, sizeof(Model));
    m->callbacks = callbacks;
    m->talkative = talkative;
    strncpy(m->name, name, sizeof m->name - 1);
    memcpy(m->r, start, sizeof start);
    return m;
}

const char *F(GetModelTypesPlatform)() { return "standard32"; }
const char *F(GetTypesPlatform)() { return "standard32"; }
const char *F(GetVersion)() { return "1.0"; }
fmi1Component F(InstantiateModel)(fmi1String name, fmi1String guid, fmi1CallbackFunctions callbacks, fmi1Boolean log) {
    return make(name, guid, callbacks, log);
}
fmi1Component F(InstantiateSlave)(fmi1String name, fmi1String guid, fmi1String location, fmi1String mime,
                                  fmi1Real timeout, fmi1Boolean visible, fmi1Boolean interactive,
                                  fmi1CallbackFunctions callbacks, fmi1Boolean log) {
    return make(name, guid, callbacks, log);
}
void F(FreeModelInstance)(fmi1Component c) {
    BEGIN if (m->talkative) SAY(fmi1OK, "freed");
    m->callbacks.freeMemory(m);
}
void F(FreeSlaveInstance)(fmi1Component c) {
    BEGIN m->callbacks.freeMemory(m);
}
fmi1Status F(SetDebugLogging)(fmi1Component c, fmi1Boolean on) { return fmi1OK; }
fmi1Status F(Terminate)(fmi1Component c) { return fmi1OK; }
fmi1Status F(TerminateSlave)(fmi1Component c) { return fmi1OK; }
fmi1Status F(ResetSlave)(fmi1Component c) { BEGIN memcpy(m->r, start, sizeof start); return fmi1OK; }

fmi1Status F(GetReal)(fmi1Component c, const fmi1ValueReference vr[], size_t n, fmi1Real value[]) {
    BEGIN calculate(m);
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= NV) return fmi1Error;
        value[i] = m->r[vr[i]];
    }
    return fmi1OK;
}
fmi1Status F(SetReal)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const fmi1Real value[]) {
    BEGIN ON_SET_REAL
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= NV) return fmi1Error;
        m->r[vr[i]] = value[i];
    }
    return fmi1OK;
}
fmi1Status F(GetInteger)(fmi1Component c, const fmi1ValueReference vr[], size_t n, fmi1Integer value[]) {
    BEGIN for (size_t i = 0; i < n; i++) value[i] = m->whole[vr[i] % 4];
    return fmi1OK;
}
fmi1Status F(SetInteger)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const fmi1Integer value[]) {
    BEGIN for (size_t i = 0; i < n; i++) m->whole[vr[i] % 4] = value[i];
    return fmi1OK;
}
fmi1Status F(GetBoolean)(fmi1Component c, const fmi1ValueReference vr[], size_t n, fmi1Boolean value[]) {
    BEGIN for (size_t i = 0; i < n; i++) value[i] = (char)m->whole[vr[i] % 4];
    return fmi1OK;
}
fmi1Status F(SetBoolean)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const fmi1Boolean value[]) {
    BEGIN for (size_t i = 0; i < n; i++) m->whole[vr[i] % 4] = value[i];
    return fmi1OK;
}
fmi1Status F(GetString)(fmi1Component c, const fmi1ValueReference vr[], size_t n, fmi1String value[]) {
    return fmi1Error;
}
fmi1Status F(SetString)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const fmi1String value[]) {
    BEGIN for (size_t i = 0; i < n; i++) m->whole[vr[i] % 4] = (int)strlen(value[i]);
    return fmi1OK;
}

/* ------------------------------------------------------------------ model exchange */

fmi1Status F(SetTime)(fmi1Component c, fmi1Real time) { BEGIN m->time = time; return fmi1OK; }
fmi1Status F(Initialize)(fmi1Component c, fmi1Boolean controlled, fmi1Real tolerance, fmi1EventInfo *info) {
    BEGIN memset(info, 0, sizeof *info);
    info->iterationConverged = fmi1True;
    m->initialized = 1;
    ON_INITIALIZE
    return fmi1OK;
}
fmi1Status F(EventUpdate)(fmi1Component c, fmi1Boolean intermediate, fmi1EventInfo *info) {
    BEGIN memset(info, 0, sizeof *info);
    info->iterationConverged = fmi1True;
    ON_EVENT_UPDATE
    return fmi1OK;
}
fmi1Status F(CompletedIntegratorStep)(fmi1Component c, fmi1Boolean *event) { *event = fmi1False; return fmi1OK; }
fmi1Status F(SetContinuousStates)(fmi1Component c, const fmi1Real x[], size_t n) {
    BEGIN if (n != NX) return fmi1Error;
    for (size_t i = 0; i < n; i++) m->r[states[i]] = x[i];
    return fmi1OK;
}
fmi1Status F(GetContinuousStates)(fmi1Component c, fmi1Real x[], size_t n) {
    BEGIN for (size_t i = 0; i < NX; i++) x[i] = m->r[states[i]];
    return fmi1OK;
}
fmi1Status F(GetDerivatives)(fmi1Component c, fmi1Real x[], size_t n) {
    BEGIN if (n != NX || !m->initialized) return fmi1Error;
    calculate(m);
    ON_GET_DERIVATIVES
    for (size_t i = 0; i < n; i++) x[i] = m->r[derivatives[i]];
    return fmi1OK;
}
fmi1Status F(GetEventIndicators)(fmi1Component c, fmi1Real z[], size_t n) {
    BEGIN for (size_t i = 0; i < n; i++) z[i] = m->r[0] - 10;
    return fmi1OK;
}
fmi1Status F(GetNominalContinuousStates)(fmi1Component c, fmi1Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = NOMINAL;
    return fmi1OK;
}
fmi1Status F(GetStateValueReferences)(fmi1Component c, fmi1ValueReference vr[], size_t n) {
    BEGIN ON_GET_REFERENCES
    for (size_t i = 0; i < n && i < NX; i++) vr[i] = told[i];
    return fmi1OK;
}

/* ------------------------------------------------------------------ co-simulation */

fmi1Status F(InitializeSlave)(fmi1Component c, fmi1Real time, fmi1Boolean defined, fmi1Real stop) {
    BEGIN m->time = time;
    m->initialized = 1;
    return fmi1OK;
}
fmi1Status F(DoStep)(fmi1Component c, fmi1Real time, fmi1Real step, fmi1Boolean new) {
    BEGIN if (fabs(time - m->time) > 1e-9 * (1 + fabs(time))) return fmi1Error;
    for (int k = 0; k < 100; k++) {
        double before[NX];
        calculate(m);
        for (int i = 0; i < NX; i++) {
            before[i] = m->r[states[i]];
            m->r[states[i]] += step / 200 * m->r[derivatives[i]];
        }
        calculate(m);
        for (int i = 0; i < NX; i++) m->r[states[i]] = before[i] + step / 100 * m->r[derivatives[i]];
    }
    m->time = time + step;
    return fmi1OK;
}
fmi1Status F(CancelStep)(fmi1Component c) { return fmi1Error; }
fmi1Status F(SetRealInputDerivatives)(fmi1Component c, const fmi1ValueReference vr[], size_t n,
                                      const fmi1Integer order[], const fmi1Real value[]) { return fmi1Error; }
fmi1Status F(GetRealOutputDerivatives)(fmi1Component c, const fmi1ValueReference vr[], size_t n,
                                       const fmi1Integer order[], fmi1Real value[]) { return fmi1Error; }
fmi1Status F(GetStatus)(fmi1Component c, const fmi1StatusKind kind, fmi1Status *value) { return fmi1Discard; }
fmi1Status F(GetRealStatus)(fmi1Component c, const fmi1StatusKind kind, fmi1Real *value) { return fmi1Discard; }
fmi1Status F(GetIntegerStatus)(fmi1Component c, const fmi1StatusKind kind, fmi1Integer *value) { return fmi1Discard; }
fmi1Status F(GetBooleanStatus)(fmi1Component c, const fmi1StatusKind kind, fmi1Boolean *value) { return fmi1Discard; }
fmi1Status F(GetStringStatus)(fmi1Component c, const fmi1StatusKind kind, fmi1String *value) { return fmi1Discard; }
