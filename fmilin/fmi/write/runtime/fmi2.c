/* The functions of FMI 2.0. This is the one file to compile: it includes the others.
 *
 * The standard's header is the one that FMPy ships, which gives the functions no prefix.
 */
#include "fmi2Functions.h"

#define WITH_ADJOINT 0
#define WITH_INPUT_SLOPES 1
#include "instance.c"

#define FMI(name) fmi2##name
#define FMI_TEXT(name) "fmi2" #name
#define STATE(before, after) before##FMUstate##after
#define DESERIALIZE DeSerializeFMUstate
#define GET_DERIVATIVES GetDerivatives
typedef fmi2Component Handle;
typedef fmi2FMUstate SavedState;
#include "functions.c"

#define ONLY_REALS "the model has Real variables only"
#define NOT_PENDING "no step of this FMU is ever pending"

/* The logger takes a printf format, in which '#' marks value references: both characters are doubled. */
static void deliver(const Instance *instance, Status status, const char *category, const char *message)
{
    char format[2 * 1024 + 1];
    size_t n = 0;
    for (; *message && n + 2 < sizeof format; message++) {
        if (*message == '%' || *message == '#') format[n++] = *message;
        format[n++] = *message;
    }
    format[n] = '\0';
    fmi2CallbackLogger logger = (fmi2CallbackLogger)instance->logger;
    if (logger) logger(instance->environment, instance->name, (fmi2Status)status, category, format);
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }

fmi2Component fmi2Instantiate(fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID,
                              fmi2String fmuResourceLocation, const fmi2CallbackFunctions *functions,
                              fmi2Boolean visible, fmi2Boolean loggingOn)
{
    (void)visible, (void)loggingOn;
    if (!functions) return NULL;
    const Request request = {
        .name = instanceName, .token = fmuGUID, .resources = fmuResourceLocation,
        .co_simulation = fmuType == fmi2CoSimulation, .deliver = deliver, .logger = (AnyFunction *)functions->logger,
        .environment = functions->componentEnvironment,
    };
    return instance_new(request, "fmi2Instantiate");
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime)
{
    (void)stopTimeDefined, (void)stopTime;
    return (fmi2Status)set_up(c, toleranceDefined, tolerance, startTime, "fmi2SetupExperiment");
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    return (fmi2Status)enter(c, INSTANTIATED, INITIALIZATION, "fmi2EnterInitializationMode");
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[])
{
    return (fmi2Status)get_values(c, vr, nvr, value, "fmi2GetReal");
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Real value[])
{
    return (fmi2Status)set_values(c, vr, nvr, value, "fmi2SetReal");
}

/* Other types: nothing can be asked for, and asking for nothing is no error. */
#define NO_VARIABLES(Type)                                                                                           \
    fmi2Status fmi2Get##Type(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2##Type value[])         \
    {                                                                                                                \
        (void)vr, (void)value;                                                                                       \
        return nvr ? (fmi2Status)not_applicable(c, "fmi2Get" #Type, ONLY_REALS) : fmi2OK;                            \
    }                                                                                                                \
    fmi2Status fmi2Set##Type(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2##Type value[])   \
    {                                                                                                                \
        (void)vr, (void)value;                                                                                       \
        return nvr ? (fmi2Status)not_applicable(c, "fmi2Set" #Type, ONLY_REALS) : fmi2OK;                            \
    }

NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference vUnknown_ref[], size_t nUnknown,
                                        const fmi2ValueReference vKnown_ref[], size_t nKnown,
                                        const fmi2Real dvKnown[], fmi2Real dvUnknown[])
{
    return (fmi2Status)directional_derivative(c, vUnknown_ref, nUnknown, vKnown_ref, nKnown, dvKnown, dvUnknown,
                                              "fmi2GetDirectionalDerivative");
}

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    if (!allowed(c, EVENT, "fmi2NewDiscreteStates")) return fmi2Error;
    info->newDiscreteStatesNeeded = fmi2False;
    info->terminateSimulation = fmi2False;
    info->nominalsOfContinuousStatesChanged = fmi2False;
    info->valuesOfContinuousStatesChanged = fmi2False;
    info->nextEventTimeDefined = fmi2False;
    info->nextEventTime = 0.0;
    return fmi2OK;
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                       const fmi2Integer order[], const fmi2Real value[])
{
    return (fmi2Status)set_slopes(c, vr, order, nvr, value, "fmi2SetRealInputDerivatives");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                        const fmi2Integer order[], fmi2Real value[])
{
    return (fmi2Status)output_slopes(c, vr, order, nvr, value, "fmi2GetRealOutputDerivatives");
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
                      fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    return (fmi2Status)do_step(c, currentCommunicationPoint, communicationStepSize, "fmi2DoStep");
}

/* No step is ever pending: there is nothing to cancel, and a status to ask for only about steps that failed. */
fmi2Status fmi2CancelStep(fmi2Component c)
{
    return (fmi2Status)not_applicable(c, "fmi2CancelStep", NOT_PENDING);
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind s, fmi2Real *value)
{
    const Instance *instance = c;
    if (!allowed(instance, ANY_MODE, "fmi2GetRealStatus")) return fmi2Error;
    if (s != fmi2LastSuccessfulTime) return (fmi2Status)not_applicable(c, "fmi2GetRealStatus", NOT_PENDING);
    *value = *instance->v.time;
    return fmi2OK;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind s, fmi2Boolean *value)
{
    if (!allowed(c, ANY_MODE, "fmi2GetBooleanStatus")) return fmi2Error;
    if (s != fmi2Terminated) return (fmi2Status)not_applicable(c, "fmi2GetBooleanStatus", NOT_PENDING);
    *value = fmi2False;
    return fmi2OK;
}

#define NO_STATUS(Name, Type)                                                                                        \
    fmi2Status fmi2Get##Name(fmi2Component c, const fmi2StatusKind s, fmi2##Type *value)                             \
    {                                                                                                                \
        (void)s, (void)value;                                                                                        \
        return (fmi2Status)not_applicable(c, "fmi2Get" #Name, NOT_PENDING);                                          \
    }

NO_STATUS(Status, Status)
NO_STATUS(IntegerStatus, Integer)
NO_STATUS(StringStatus, String)
