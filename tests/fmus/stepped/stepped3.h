/* The functions of FMI 3.0 for co-simulation, for stepped.h. */

#define OK(name) fmi3Status fmi3##name() { return fmi3OK; }
#define NOT_HERE(name) fmi3Status fmi3##name() { return fmi3Error; }

OK(SetDebugLogging) OK(Terminate) OK(EnterStepMode)
NOT_HERE(Reset) NOT_HERE(EnterContinuousTimeMode) NOT_HERE(EnterConfigurationMode)
NOT_HERE(ExitConfigurationMode) NOT_HERE(SetTime) NOT_HERE(CompletedIntegratorStep)
NOT_HERE(GetInt8) NOT_HERE(GetUInt8) NOT_HERE(GetInt16) NOT_HERE(GetUInt16) NOT_HERE(GetInt32) NOT_HERE(GetUInt32)
NOT_HERE(GetInt64) NOT_HERE(GetUInt64) NOT_HERE(GetBoolean) NOT_HERE(GetString) NOT_HERE(GetBinary) NOT_HERE(GetClock)
NOT_HERE(SetInt8) NOT_HERE(SetUInt8) NOT_HERE(SetInt16) NOT_HERE(SetUInt16) NOT_HERE(SetInt32) NOT_HERE(SetUInt32)
NOT_HERE(SetInt64) NOT_HERE(SetUInt64) NOT_HERE(SetBoolean) NOT_HERE(SetString) NOT_HERE(SetBinary)
NOT_HERE(GetFloat32) NOT_HERE(SetFloat32) NOT_HERE(GetNumberOfVariableDependencies) NOT_HERE(GetVariableDependencies)
NOT_HERE(SerializedFMUStateSize) NOT_HERE(SerializeFMUState) NOT_HERE(DeserializeFMUState)
NOT_HERE(GetDirectionalDerivative) NOT_HERE(GetAdjointDerivative) NOT_HERE(GetIntervalDecimal)
NOT_HERE(GetIntervalFraction) NOT_HERE(GetShiftDecimal) NOT_HERE(GetShiftFraction) NOT_HERE(SetIntervalDecimal)
NOT_HERE(SetIntervalFraction) NOT_HERE(SetShiftDecimal) NOT_HERE(SetShiftFraction) NOT_HERE(EvaluateDiscreteStates)
NOT_HERE(GetEventIndicators) NOT_HERE(GetNumberOfEventIndicators) NOT_HERE(GetOutputDerivatives)
NOT_HERE(ActivateModelPartition) NOT_HERE(SetContinuousStates) NOT_HERE(GetContinuousStates)
NOT_HERE(GetContinuousStateDerivatives) NOT_HERE(GetNominalsOfContinuousStates) NOT_HERE(GetNumberOfContinuousStates)

fmi3Status fmi3ExitInitializationMode(fmi3Instance c) { ((Model *)c)->running = 1; return fmi3OK; }
const char *fmi3GetVersion(void) { return "3.0"; }
fmi3Instance fmi3InstantiateModelExchange() { return NULL; }
fmi3Instance fmi3InstantiateScheduledExecution() { return NULL; }
fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early,
                                         const fmi3ValueReference intermediate[], size_t n,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback update) {
    Model *m = made();
    m->events = events, m->early = early;
    return m;
}
#ifdef CLOCKED
OK(EnterEventMode)
fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Clock value[]) {
    ((Model *)c)->ticking = value[0];
    return fmi3OK;
}
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *scheduled, double *time) {
    Model *m = c;
    *again = *terminate = *nominals = *values = *scheduled = fmi3False;
    memcpy(m->used, m->u, sizeof m->u);
    if (m->ticking) tick(m);
    m->ticking = 0;
    return fmi3OK;
}
#elif defined(RETURNS_EARLY)
OK(EnterEventMode) NOT_HERE(SetClock)
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *scheduled, double *time) {
    Model *m = c;
    *again = *terminate = *nominals = *values = *scheduled = fmi3False;
    memcpy(m->used, m->u, sizeof m->u);
    if (m->running && m->next_tick <= m->time + 1e-9) tick(m), m->next_tick += PERIOD;
    return fmi3OK;
}
#else
NOT_HERE(EnterEventMode) NOT_HERE(UpdateDiscreteStates) NOT_HERE(SetClock)
#endif
void fmi3FreeInstance(fmi3Instance c) { free(c); }
fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean defined, double tolerance, double time,
                                       fmi3Boolean stopDefined, double stop) {
    Model *m = c;
    m->time = m->next_tick = time;
    m->loose = !(defined && tolerance < 1e-8);
    m->tolerance = defined ? tolerance : 1e-4;
    return fmi3OK;
}
fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, double value[], size_t s) {
    return get(c, vr, n, value) ? fmi3OK : fmi3Error;
}
fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const double value[], size_t s) {
    return set(c, vr, n, value) ? fmi3OK : fmi3Error;
}
fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *s) { saved(c, s); return fmi3OK; }
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState s) { restored(c, s); return fmi3OK; }
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *s) { free(*s); *s = NULL; return fmi3OK; }
fmi3Status fmi3DoStep(fmi3Instance c, double time, double h, fmi3Boolean noRestore, fmi3Boolean *event,
                      fmi3Boolean *terminate, fmi3Boolean *early, double *reached) {
    Model *m = c;
    *event = *early = *terminate = fmi3False;
#ifdef ENDS_AT
    if (time + h > ENDS_AT) *terminate = fmi3True;
#endif
#ifdef CLOCKED
    if (!m->events || h > PERIOD * (1 + 1e-9)) return fmi3Error;
#endif
#ifdef RETURNS_EARLY
    if (!m->events || !m->early) return fmi3Error;
    if (m->next_tick <= time + 1e-9) return fmi3Error; /* the event mode that it asked for was not entered */
    if (m->next_tick < time + h - 1e-9) h = m->next_tick - time, *early = *event = fmi3True;
    if (fabs(m->next_tick - time - h) < 1e-9) *event = fmi3True;
#endif
    int done = may_be_taken_back(m, h, noRestore);
    *reached = m->time;
    return done ? fmi3OK : fmi3Discard;
}
