/* The functions of FMI 2.0, for stepped.h. */

#define OK(name) fmi2Status fmi2##name(fmi2Component c) { return fmi2OK; }
OK(EnterInitializationMode) OK(Terminate) OK(EnterEventMode) OK(EnterContinuousTimeMode)
OK(CancelStep)

fmi2Status fmi2ExitInitializationMode(fmi2Component c) { ((Model *)c)->running = 1; return fmi2OK; }
const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String k[]) { return fmi2OK; }
fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    return made();
}
void fmi2FreeInstance(fmi2Component c) { free(c); }
fmi2Status fmi2Reset(fmi2Component c) { return fmi2Error; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean defined, fmi2Real tolerance, fmi2Real time,
                               fmi2Boolean stopDefined, fmi2Real stop) {
    Model *m = c;
    m->time = m->next_tick = time;
    m->loose = !(defined && tolerance < 1e-8);
    m->tolerance = defined ? tolerance : 1e-4;
    return fmi2OK;
}
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
    return get(c, vr, n, value) ? fmi2OK : fmi2Error;
}
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
    return set(c, vr, n, value) ? fmi2OK : fmi2Error;
}
#define NONE(kind, type)                                                                                              \
    fmi2Status fmi2Get##kind(fmi2Component c, const fmi2ValueReference vr[], size_t n, type value[]) {                \
        return fmi2Error;                                                                                             \
    }                                                                                                                 \
    fmi2Status fmi2Set##kind(fmi2Component c, const fmi2ValueReference vr[], size_t n, const type value[]) {          \
        return fmi2Error;                                                                                             \
    }
NONE(Integer, fmi2Integer) NONE(Boolean, fmi2Boolean) NONE(String, fmi2String)

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *s) {
#ifdef BREAKS_PROMISE
    return fmi2Error;
#endif
    saved(c, s);
    return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate s) { restored(c, s); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *s) { free(*s); *s = NULL; return fmi2OK; }
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate s, size_t *n) { return fmi2Error; }
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate s, fmi2Byte b[], size_t n) { return fmi2Error; }
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte b[], size_t n, fmi2FMUstate *s) { return fmi2Error; }
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknown[], size_t nUnknown,
                                        const fmi2ValueReference known[], size_t nKnown, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    Model ahead = *(Model *)c, behind = ahead; /* a central difference inside, as some tools do */
    double h = 1e-5;
    for (size_t j = 0; j < nKnown; j++) *at(&ahead, known[j]) += h * seed[j], *at(&behind, known[j]) -= h * seed[j];
    look(&ahead), look(&behind);
    for (size_t i = 0; i < nUnknown; i++) sensitivity[i] = (*at(&ahead, unknown[i]) - *at(&behind, unknown[i])) / (2 * h);
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real h, fmi2Boolean noRestore) {
    return may_be_taken_back(c, h, noRestore) ? fmi2OK : fmi2Discard;
}
fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                       const fmi2Integer order[], const fmi2Real value[]) { return fmi2Error; }
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                        const fmi2Integer order[], fmi2Real value[]) { return fmi2Error; }
#define NO_STATUS(kind, type)                                                                                         \
    fmi2Status fmi2Get##kind(fmi2Component c, const fmi2StatusKind s, type *value) { return fmi2Discard; }
NO_STATUS(Status, fmi2Status) NO_STATUS(RealStatus, fmi2Real) NO_STATUS(IntegerStatus, fmi2Integer)
NO_STATUS(BooleanStatus, fmi2Boolean) NO_STATUS(StringStatus, fmi2String)

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
    memset(info, 0, sizeof *info);
#ifdef PERIOD
    Model *m = c;
    if (m->next_tick <= m->time + 1e-9) {
        memcpy(m->used, m->u, sizeof m->u);
        tick(m);
        m->next_tick += PERIOD;
    }
    info->nextEventTimeDefined = fmi2True;
    info->nextEventTime = m->next_tick;
#endif
    return fmi2OK;
}
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no, fmi2Boolean *event, fmi2Boolean *terminate) {
    *event = *terminate = fmi2False;
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { ((Model *)c)->time = time; return fmi2OK; }
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
    memcpy(((Model *)c)->x, x, n * sizeof *x);
    return n == NX ? fmi2OK : fmi2Error;
}
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    memcpy(x, ((Model *)c)->x, n * sizeof *x);
    return n == NX ? fmi2OK : fmi2Error;
}
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real x[], size_t n) {
    look(c);
    memcpy(x, ((Model *)c)->dx, n * sizeof *x);
    return n == NX ? fmi2OK : fmi2Error;
}
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n) { return fmi2OK; }
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 1;
    return fmi2OK;
}
