/* The functions of FMI 3.0. This is the one file to compile: it includes the others.
 *
 * For a static library, where several FMUs meet, compile with -DFMI3_FUNCTION_PREFIX=<modelIdentifier>_.
 */
#include "fmi3Functions.h"

#define WITH_ADJOINT 1
#define WITH_INPUT_SLOPES 0 /* the standard has no function for them */
#include "instance.c"

#define FMI(name) fmi3##name
#define FMI_TEXT(name) "fmi3" #name
#define STATE(before, after) before##FMUState##after
#define DESERIALIZE DeserializeFMUState
#define GET_DERIVATIVES GetContinuousStateDerivatives
typedef fmi3Instance Handle;
typedef fmi3FMUState SavedState;
#include "functions.c"

#define ONLY_FLOAT64 "the model has Float64 variables only"

static void deliver(const Instance *instance, Status status, const char *category, const char *message)
{
    fmi3LogMessageCallback logger = (fmi3LogMessageCallback)instance->logger;
    if (logger) logger(instance->environment, (fmi3Status)status, category, message);
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String instanceName, fmi3String instantiationToken,
                                          fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                          fmi3InstanceEnvironment instanceEnvironment,
                                          fmi3LogMessageCallback logMessage)
{
    (void)visible, (void)loggingOn;
    const Request request = {
        .name = instanceName, .token = instantiationToken, .resources = resourcePath, .deliver = deliver,
        .logger = (AnyFunction *)logMessage, .environment = instanceEnvironment,
    };
    return instance_new(request, "fmi3InstantiateModelExchange");
}

/* Before there is an instance: a reason why there will be none. */
static fmi3Instance no_instance(fmi3LogMessageCallback logger, fmi3InstanceEnvironment environment, const char *reason)
{
    if (logger) logger(environment, fmi3Error, "logStatusError", reason);
    return NULL;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String instanceName, fmi3String instantiationToken,
                                         fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                         fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed,
                                         const fmi3ValueReference requiredIntermediateVariables[],
                                         size_t nRequiredIntermediateVariables,
                                         fmi3InstanceEnvironment instanceEnvironment,
                                         fmi3LogMessageCallback logMessage,
                                         fmi3IntermediateUpdateCallback intermediateUpdate)
{
    (void)visible, (void)loggingOn, (void)earlyReturnAllowed, (void)requiredIntermediateVariables;
    (void)nRequiredIntermediateVariables, (void)intermediateUpdate;
    if (eventModeUsed)
        return no_instance(logMessage, instanceEnvironment,
                           "fmi3InstantiateCoSimulation: this FMU has no event mode in co-simulation.");
    const Request request = {
        .name = instanceName, .token = instantiationToken, .resources = resourcePath, .co_simulation = 1,
        .deliver = deliver, .logger = (AnyFunction *)logMessage, .environment = instanceEnvironment,
    };
    return instance_new(request, "fmi3InstantiateCoSimulation");
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String instanceName, fmi3String instantiationToken,
                                               fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                               fmi3InstanceEnvironment instanceEnvironment,
                                               fmi3LogMessageCallback logMessage, fmi3ClockUpdateCallback clockUpdate,
                                               fmi3LockPreemptionCallback lockPreemption,
                                               fmi3UnlockPreemptionCallback unlockPreemption)
{
    (void)instanceName, (void)instantiationToken, (void)resourcePath, (void)visible, (void)loggingOn;
    (void)clockUpdate, (void)lockPreemption, (void)unlockPreemption;
    return no_instance(logMessage, instanceEnvironment,
                       "fmi3InstantiateScheduledExecution: this FMU is for model exchange and co-simulation only.");
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime)
{
    (void)stopTimeDefined, (void)stopTime;
    const char *const function = "fmi3EnterInitializationMode";
    Status status = set_up(c, toleranceDefined, tolerance, startTime, function);
    return (fmi3Status)(status == STATUS_OK ? enter(c, INSTANTIATED, INITIALIZATION, function) : status);
}

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          fmi3Float64 values[], size_t nValues)
{
    if (!allowed(instance, ANY_MODE, "fmi3GetFloat64")) return fmi3Error;
    if (right_count(instance, nValues, nValueReferences, "fmi3GetFloat64") != STATUS_OK) return fmi3Error;
    return (fmi3Status)get_values(instance, valueReferences, nValueReferences, values, "fmi3GetFloat64");
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          const fmi3Float64 values[], size_t nValues)
{
    if (!allowed(instance, ANY_MODE, "fmi3SetFloat64")) return fmi3Error;
    if (right_count(instance, nValues, nValueReferences, "fmi3SetFloat64") != STATUS_OK) return fmi3Error;
    return (fmi3Status)set_values(instance, valueReferences, nValueReferences, values, "fmi3SetFloat64");
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                        const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                        size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    if (!allowed(instance, ANY_MODE, "fmi3GetDirectionalDerivative")) return fmi3Error;
    if (right_count(instance, nSeed, nKnowns, "fmi3GetDirectionalDerivative") != STATUS_OK) return fmi3Error;
    if (right_count(instance, nSensitivity, nUnknowns, "fmi3GetDirectionalDerivative") != STATUS_OK) return fmi3Error;
    return (fmi3Status)directional_derivative(instance, unknowns, nUnknowns, knowns, nKnowns, seed, sensitivity,
                                              "fmi3GetDirectionalDerivative");
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                    size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    const char *const function = "fmi3GetAdjointDerivative";
    if (!allowed(instance, ANY_MODE, function)) return fmi3Error;
    if (right_count(instance, nSeed, nUnknowns, function) != STATUS_OK) return fmi3Error;
    if (right_count(instance, nSensitivity, nKnowns, function) != STATUS_OK) return fmi3Error;
    return (fmi3Status)adjoint_derivative(instance, unknowns, nUnknowns, knowns, nKnowns, seed, sensitivity, function);
}

fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance)
{
    return allowed(instance, INITIALIZATION + EVENT, "fmi3EvaluateDiscreteStates") ? fmi3OK : fmi3Error;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *discreteStatesNeedUpdate,
                                    fmi3Boolean *terminateSimulation, fmi3Boolean *nominalsOfContinuousStatesChanged,
                                    fmi3Boolean *valuesOfContinuousStatesChanged, fmi3Boolean *nextEventTimeDefined,
                                    fmi3Float64 *nextEventTime)
{
    if (!allowed(instance, EVENT, "fmi3UpdateDiscreteStates")) return fmi3Error;
    *discreteStatesNeedUpdate = fmi3False;
    *terminateSimulation = fmi3False;
    *nominalsOfContinuousStatesChanged = fmi3False;
    *valuesOfContinuousStatesChanged = fmi3False;
    *nextEventTimeDefined = fmi3False;
    *nextEventTime = 0.0;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *nEventIndicators)
{
    if (!allowed(instance, ANY_MODE, "fmi3GetNumberOfEventIndicators")) return fmi3Error;
    *nEventIndicators = 0;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *nContinuousStates)
{
    if (!allowed(instance, ANY_MODE, "fmi3GetNumberOfContinuousStates")) return fmi3Error;
    *nContinuousStates = ((const Instance *)instance)->v.nf;
    return fmi3OK;
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                    size_t nValueReferences, const fmi3Int32 orders[], fmi3Float64 values[],
                                    size_t nValues)
{
    const char *const function = "fmi3GetOutputDerivatives";
    if (!allowed(instance, ANY_MODE, function)) return fmi3Error;
    if (right_count(instance, nValues, nValueReferences, function) != STATUS_OK) return fmi3Error;
    return (fmi3Status)output_slopes(instance, valueReferences, orders, nValueReferences, values, function);
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    Status status = do_step(instance, currentCommunicationPoint, communicationStepSize, "fmi3DoStep");
    if (!instance || status == STATUS_ERROR) return fmi3Error;
    if (eventHandlingNeeded) *eventHandlingNeeded = fmi3False;
    if (terminateSimulation) *terminateSimulation = fmi3False;
    if (earlyReturn) *earlyReturn = fmi3False;
    if (lastSuccessfulTime) *lastSuccessfulTime = *((const Instance *)instance)->v.time;
    return (fmi3Status)status;
}

#include "fmi3_unused.c"
