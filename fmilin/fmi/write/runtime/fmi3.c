/* The functions of FMI 3.0. This is the one file to compile: it includes the others.
 *
 * For a static library, where several FMUs meet, compile with -DFMI3_FUNCTION_PREFIX=<modelIdentifier>_.
 */
#include "fmi3Functions.h"

#include "instance.c"

#define MODEL_EXCHANGE "this FMU is for model exchange only"
#define ONLY_FLOAT64 "the model has Float64 variables only"
#define NO_CLOCKS "the model has no clocks"

static void deliver(const Instance *instance, Status status, const char *category, const char *message)
{
    fmi3LogMessageCallback logger = (fmi3LogMessageCallback)instance->logger;
    if (logger) logger(instance->environment, (fmi3Status)status, category, message);
}

const char *fmi3GetVersion(void) { return fmi3Version; }

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean loggingOn, size_t nCategories,
                               const fmi3String categories[])
{
    /* Only failures are logged, and those always: there is nothing to switch. */
    (void)loggingOn, (void)nCategories, (void)categories;
    return allowed(instance, ANY_MODE, "fmi3SetDebugLogging") ? fmi3OK : fmi3Error;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String instanceName, fmi3String instantiationToken,
                                          fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                          fmi3InstanceEnvironment instanceEnvironment,
                                          fmi3LogMessageCallback logMessage)
{
    (void)resourcePath, (void)visible, (void)loggingOn;
    return instance_new(instanceName, instantiationToken, deliver, (AnyFunction *)logMessage, instanceEnvironment);
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
    (void)instanceName, (void)instantiationToken, (void)resourcePath, (void)visible, (void)loggingOn;
    (void)eventModeUsed, (void)earlyReturnAllowed, (void)requiredIntermediateVariables;
    (void)nRequiredIntermediateVariables, (void)intermediateUpdate;
    if (logMessage)
        logMessage(instanceEnvironment, fmi3Error, "logStatusError",
                   "fmi3InstantiateCoSimulation: " MODEL_EXCHANGE ".");
    return NULL;
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
    if (logMessage)
        logMessage(instanceEnvironment, fmi3Error, "logStatusError",
                   "fmi3InstantiateScheduledExecution: " MODEL_EXCHANGE ".");
    return NULL;
}

void fmi3FreeInstance(fmi3Instance instance) { instance_free(instance); }

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime)
{
    (void)toleranceDefined, (void)tolerance, (void)stopTimeDefined, (void)stopTime;
    Instance *instance = c;
    Status status = set_time(instance, startTime, INSTANTIATED, "fmi3EnterInitializationMode");
    if (status != STATUS_OK) return (fmi3Status)status;
    instance->start_time = startTime;
    return (fmi3Status)enter(instance, INSTANTIATED, INITIALIZATION, "fmi3EnterInitializationMode");
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    return (fmi3Status)enter(instance, INITIALIZATION, EVENT, "fmi3ExitInitializationMode");
}

fmi3Status fmi3EnterEventMode(fmi3Instance instance)
{
    return (fmi3Status)enter(instance, EVENT + CONTINUOUS, EVENT, "fmi3EnterEventMode");
}

fmi3Status fmi3Terminate(fmi3Instance instance)
{
    return (fmi3Status)enter(instance, EVENT + CONTINUOUS, TERMINATED, "fmi3Terminate");
}

fmi3Status fmi3Reset(fmi3Instance instance)
{
    if (!allowed(instance, ANY_MODE, "fmi3Reset")) return fmi3Error;
    instance_reset(instance);
    return fmi3OK;
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

/* Other types: nothing can be asked for, and asking for nothing is no error. */
static fmi3Status no_variables(const Instance *instance, size_t n, const char *function)
{
    return n ? (fmi3Status)not_applicable(instance, function, ONLY_FLOAT64) : fmi3OK;
}

#define NO_VARIABLES(Type)                                                                                           \
    fmi3Status fmi3Get##Type(fmi3Instance instance, const fmi3ValueReference valueReferences[],                      \
                             size_t nValueReferences, fmi3##Type values[], size_t nValues)                           \
    {                                                                                                                \
        (void)valueReferences, (void)values, (void)nValues;                                                          \
        return no_variables(instance, nValueReferences, "fmi3Get" #Type);                                            \
    }                                                                                                                \
    fmi3Status fmi3Set##Type(fmi3Instance instance, const fmi3ValueReference valueReferences[],                      \
                             size_t nValueReferences, const fmi3##Type values[], size_t nValues)                     \
    {                                                                                                                \
        (void)valueReferences, (void)values, (void)nValues;                                                          \
        return no_variables(instance, nValueReferences, "fmi3Set" #Type);                                            \
    }

NO_VARIABLES(Float32)
NO_VARIABLES(Int8)
NO_VARIABLES(UInt8)
NO_VARIABLES(Int16)
NO_VARIABLES(UInt16)
NO_VARIABLES(Int32)
NO_VARIABLES(UInt32)
NO_VARIABLES(Int64)
NO_VARIABLES(UInt64)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         size_t valueSizes[], fmi3Binary values[], size_t nValues)
{
    (void)valueReferences, (void)valueSizes, (void)values, (void)nValues;
    return no_variables(instance, nValueReferences, "fmi3GetBinary");
}

fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         const size_t valueSizes[], const fmi3Binary values[], size_t nValues)
{
    (void)valueReferences, (void)valueSizes, (void)values, (void)nValues;
    return no_variables(instance, nValueReferences, "fmi3SetBinary");
}

fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        fmi3Clock values[])
{
    (void)valueReferences, (void)values;
    return no_variables(instance, nValueReferences, "fmi3GetClock");
}

fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        const fmi3Clock values[])
{
    (void)valueReferences, (void)values;
    return no_variables(instance, nValueReferences, "fmi3SetClock");
}

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference valueReference,
                                               size_t *nDependencies)
{
    (void)valueReference, (void)nDependencies;
    return (fmi3Status)not_applicable(instance, "fmi3GetNumberOfVariableDependencies",
                                      "the dependencies of scalar variables are in modelDescription.xml");
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent,
                                       size_t elementIndicesOfDependent[], fmi3ValueReference independents[],
                                       size_t elementIndicesOfIndependents[], fmi3DependencyKind dependencyKinds[],
                                       size_t nDependencies)
{
    (void)dependent, (void)elementIndicesOfDependent, (void)independents, (void)elementIndicesOfIndependents;
    (void)dependencyKinds, (void)nDependencies;
    return (fmi3Status)not_applicable(instance, "fmi3GetVariableDependencies",
                                      "the dependencies of scalar variables are in modelDescription.xml");
}

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *FMUState)
{
    return (fmi3Status)save(instance, FMUState, "fmi3GetFMUState");
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState FMUState)
{
    return (fmi3Status)restore(instance, FMUState, "fmi3SetFMUState");
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *FMUState)
{
    return (fmi3Status)discard_saved(instance, FMUState, "fmi3FreeFMUState");
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState FMUState, size_t *size)
{
    (void)FMUState;
    if (!allowed(instance, ANY_MODE, "fmi3SerializedFMUStateSize")) return fmi3Error;
    *size = SERIALIZED_SIZE;
    return fmi3OK;
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState FMUState, fmi3Byte serializedState[], size_t size)
{
    return (fmi3Status)serialize(instance, FMUState, serializedState, size, "fmi3SerializeFMUState");
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte serializedState[], size_t size,
                                   fmi3FMUState *FMUState)
{
    return (fmi3Status)deserialize(instance, serializedState, size, FMUState, "fmi3DeserializeFMUState");
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

#if HAS_DERIVATIVES
#include "adjoint.c"

fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                    size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    const char *const function = "fmi3GetAdjointDerivative";
    Instance *instance = c;
    Status status = check_derivative(instance, unknowns, nUnknowns, knowns, nKnowns, function);
    if (status == STATUS_OK) status = right_count(instance, nSeed, nUnknowns, function);
    if (status == STATUS_OK) status = right_count(instance, nSensitivity, nKnowns, function);
    if (status != STATUS_OK) return (fmi3Status)status;
    Model *m = &instance->model;
    memset(m->dz, 0, sizeof m->dz);
    for (size_t k = 0; k < nUnknowns; k++)
        if (row_of(unknowns[k]) >= 0) m->dz[row_of(unknowns[k])] += seed[k];
    status = solved(instance, model_adjoint_product(m), function);
    if (status != STATUS_OK) return (fmi3Status)status;
    for (size_t k = 0; k < nUnknowns; k++)
        if (row_of(unknowns[k]) < 0) m->ds[column_of(unknowns[k])] += seed[k];
    for (size_t k = 0; k < nKnowns; k++) sensitivity[k] = m->ds[column_of(knowns[k])];
    return fmi3OK;
}
#else
fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                    size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    (void)unknowns, (void)nUnknowns, (void)knowns, (void)nKnowns, (void)seed, (void)nSeed;
    (void)sensitivity, (void)nSensitivity;
    return (fmi3Status)not_applicable(instance, "fmi3GetAdjointDerivative",
                                      "this FMU was built without directional derivatives");
}
#endif

fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance)
{
    return (fmi3Status)not_applicable(instance, "fmi3EnterConfigurationMode", "the model has no structural parameters");
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance)
{
    return (fmi3Status)not_applicable(instance, "fmi3ExitConfigurationMode", "the model has no structural parameters");
}

fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                  size_t nValueReferences, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
{
    (void)valueReferences, (void)nValueReferences, (void)intervals, (void)qualifiers;
    return (fmi3Status)not_applicable(instance, "fmi3GetIntervalDecimal", NO_CLOCKS);
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                   size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[])
{
    (void)valueReferences, (void)nValueReferences, (void)counters, (void)resolutions, (void)qualifiers;
    return (fmi3Status)not_applicable(instance, "fmi3GetIntervalFraction", NO_CLOCKS);
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                               size_t nValueReferences, fmi3Float64 shifts[])
{
    (void)valueReferences, (void)nValueReferences, (void)shifts;
    return (fmi3Status)not_applicable(instance, "fmi3GetShiftDecimal", NO_CLOCKS);
}

fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
{
    (void)valueReferences, (void)nValueReferences, (void)counters, (void)resolutions;
    return (fmi3Status)not_applicable(instance, "fmi3GetShiftFraction", NO_CLOCKS);
}

fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                  size_t nValueReferences, const fmi3Float64 intervals[])
{
    (void)valueReferences, (void)nValueReferences, (void)intervals;
    return (fmi3Status)not_applicable(instance, "fmi3SetIntervalDecimal", NO_CLOCKS);
}

fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                   size_t nValueReferences, const fmi3UInt64 counters[],
                                   const fmi3UInt64 resolutions[])
{
    (void)valueReferences, (void)nValueReferences, (void)counters, (void)resolutions;
    return (fmi3Status)not_applicable(instance, "fmi3SetIntervalFraction", NO_CLOCKS);
}

fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                               size_t nValueReferences, const fmi3Float64 shifts[])
{
    (void)valueReferences, (void)nValueReferences, (void)shifts;
    return (fmi3Status)not_applicable(instance, "fmi3SetShiftDecimal", NO_CLOCKS);
}

fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                size_t nValueReferences, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)valueReferences, (void)nValueReferences, (void)counters, (void)resolutions;
    return (fmi3Status)not_applicable(instance, "fmi3SetShiftFraction", NO_CLOCKS);
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

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance)
{
    return (fmi3Status)enter(instance, EVENT, CONTINUOUS, "fmi3EnterContinuousTimeMode");
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi3Boolean *enterEventMode, fmi3Boolean *terminateSimulation)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    if (!allowed(instance, CONTINUOUS, "fmi3CompletedIntegratorStep")) return fmi3Error;
    *enterEventMode = fmi3False;
    *terminateSimulation = fmi3False;
    return fmi3OK;
}

fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64 time)
{
    return (fmi3Status)set_time(instance, time, EVENT + CONTINUOUS, "fmi3SetTime");
}

fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64 continuousStates[],
                                   size_t nContinuousStates)
{
    return (fmi3Status)set_states(instance, continuousStates, nContinuousStates, "fmi3SetContinuousStates");
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64 derivatives[],
                                             size_t nContinuousStates)
{
    return (fmi3Status)get_derivatives(instance, derivatives, nContinuousStates, "fmi3GetContinuousStateDerivatives");
}

fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64 eventIndicators[], size_t nEventIndicators)
{
    (void)eventIndicators;
    if (!allowed(instance, ANY_MODE - INSTANTIATED, "fmi3GetEventIndicators")) return fmi3Error;
    return (fmi3Status)right_count(instance, nEventIndicators, 0, "fmi3GetEventIndicators");
}

fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64 continuousStates[], size_t nContinuousStates)
{
    return (fmi3Status)get_states(instance, continuousStates, nContinuousStates, "fmi3GetContinuousStates");
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64 nominals[], size_t nContinuousStates)
{
    return (fmi3Status)get_nominals(instance, nominals, nContinuousStates, "fmi3GetNominalsOfContinuousStates");
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
    *nContinuousStates = NX;
    return fmi3OK;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    return (fmi3Status)not_applicable(instance, "fmi3EnterStepMode", MODEL_EXCHANGE);
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                    size_t nValueReferences, const fmi3Int32 orders[], fmi3Float64 values[],
                                    size_t nValues)
{
    (void)valueReferences, (void)nValueReferences, (void)orders, (void)values, (void)nValues;
    return (fmi3Status)not_applicable(instance, "fmi3GetOutputDerivatives", MODEL_EXCHANGE);
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime)
{
    (void)currentCommunicationPoint, (void)communicationStepSize, (void)noSetFMUStatePriorToCurrentPoint;
    (void)eventHandlingNeeded, (void)terminateSimulation, (void)earlyReturn, (void)lastSuccessfulTime;
    return (fmi3Status)not_applicable(instance, "fmi3DoStep", MODEL_EXCHANGE);
}

fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clockReference,
                                      fmi3Float64 activationTime)
{
    (void)clockReference, (void)activationTime;
    return (fmi3Status)not_applicable(instance, "fmi3ActivateModelPartition", MODEL_EXCHANGE);
}
