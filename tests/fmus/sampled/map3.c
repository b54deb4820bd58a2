/* The map of map2.c in FMI 3.0, in a partition with a periodic clock, for model exchange and co-simulation in event mode:
   a+ = a/2 + sin(b)/4 + u, b+ = k b + a^2/8, y = a b + u, every 0.1 s. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3FunctionTypes.h"

#define OK(name) fmi3Status fmi3##name() { return fmi3OK; }
#define NOT_HERE(name) fmi3Status fmi3##name() { return fmi3Error; }

typedef struct {
    double r[8];
    int active;
} Model;

OK(SetDebugLogging) OK(Terminate) OK(EnterEventMode) OK(EnterContinuousTimeMode) OK(EnterStepMode) OK(SetTime)
OK(ExitInitializationMode) OK(GetContinuousStates) OK(SetContinuousStates) OK(GetContinuousStateDerivatives)
OK(GetNominalsOfContinuousStates) OK(GetEventIndicators)
NOT_HERE(EnterConfigurationMode) NOT_HERE(ExitConfigurationMode) NOT_HERE(CompletedIntegratorStep)
NOT_HERE(GetInt8) NOT_HERE(GetUInt8) NOT_HERE(GetInt16) NOT_HERE(GetUInt16) NOT_HERE(GetInt32) NOT_HERE(GetUInt32)
NOT_HERE(GetInt64) NOT_HERE(GetUInt64) NOT_HERE(GetBoolean) NOT_HERE(GetString) NOT_HERE(GetBinary) NOT_HERE(GetClock)
NOT_HERE(SetInt8) NOT_HERE(SetUInt8) NOT_HERE(SetInt16) NOT_HERE(SetUInt16) NOT_HERE(SetInt32) NOT_HERE(SetUInt32)
NOT_HERE(SetInt64) NOT_HERE(SetUInt64) NOT_HERE(SetBoolean) NOT_HERE(SetString) NOT_HERE(SetBinary)
NOT_HERE(GetFloat32) NOT_HERE(SetFloat32) NOT_HERE(GetNumberOfVariableDependencies) NOT_HERE(GetVariableDependencies)
NOT_HERE(SerializedFMUStateSize) NOT_HERE(SerializeFMUState) NOT_HERE(DeserializeFMUState)
NOT_HERE(GetDirectionalDerivative) NOT_HERE(GetAdjointDerivative) NOT_HERE(GetIntervalDecimal)
NOT_HERE(GetIntervalFraction) NOT_HERE(GetShiftDecimal) NOT_HERE(GetShiftFraction) NOT_HERE(SetIntervalDecimal)
NOT_HERE(SetIntervalFraction) NOT_HERE(SetShiftDecimal) NOT_HERE(SetShiftFraction) NOT_HERE(EvaluateDiscreteStates)
NOT_HERE(GetOutputDerivatives) NOT_HERE(ActivateModelPartition)

static void begin(Model *m) {
    memset(m, 0, sizeof *m);
    m->r[1] = m->r[6] = 0.5, m->r[2] = m->r[7] = 0.25, m->r[4] = 0.75;
}
fmi3Status fmi3Reset(fmi3Instance c) { begin(c); return fmi3OK; }
const char *fmi3GetVersion(void) { return "3.0"; }
fmi3Instance fmi3InstantiateModelExchange() { Model *m = malloc(sizeof *m); begin(m); return m; }
fmi3Instance fmi3InstantiateCoSimulation() { return fmi3InstantiateModelExchange(); }
fmi3Instance fmi3InstantiateScheduledExecution() { return NULL; }
void fmi3FreeInstance(fmi3Instance c) { free(c); }
fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean defined, double tolerance, double time,
                                       fmi3Boolean stopDefined, double stop) { return fmi3OK; }
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { *n = 0; return fmi3OK; }
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) { *n = 0; return fmi3OK; }
fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Clock value[]) {
    ((Model *)c)->active = value[0];
    return fmi3OK;
}
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *scheduled, double *time) {
    Model *m = c;
    *again = *terminate = *nominals = *values = *scheduled = fmi3False;
    if (m->active) {
        double a = m->r[6] = m->r[1], b = m->r[7] = m->r[2], u = m->r[0];
        m->r[3] = a * b + u;
        m->r[1] = a / 2 + sin(b) / 4 + u;
        m->r[2] = m->r[4] * b + a * a / 8;
    }
    m->active = 0;
    return fmi3OK;
}
fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, double value[], size_t s) {
    Model *m = c;
    m->r[5] = m->r[1] + m->r[2];
    for (size_t i = 0; i < n; i++) value[i] = m->r[vr[i] - 1];
    return fmi3OK;
}
fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const double value[], size_t s) {
    for (size_t i = 0; i < n; i++) ((Model *)c)->r[vr[i] - 1] = value[i];
    return fmi3OK;
}
fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *s) {
    if (!*s) *s = malloc(sizeof(Model));
    memcpy(*s, c, sizeof(Model));
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState s) { memcpy(c, s, sizeof(Model)); return fmi3OK; }
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *s) { free(*s); *s = NULL; return fmi3OK; }
fmi3Status fmi3DoStep(fmi3Instance c, double time, double h, fmi3Boolean noRestore, fmi3Boolean *event,
                      fmi3Boolean *terminate, fmi3Boolean *early, double *reached) {
    *event = *early = *terminate = fmi3False;
    *reached = time + h;
    return fmi3OK;
}
