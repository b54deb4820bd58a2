/* The functions that are the same in FMI 2.0 and FMI 3.0 but for their names and the names of their types.
 *
 * fmi2.c and fmi3.c include this file, and say before: FMI(name), a name with the standard's prefix; FMI_TEXT(name), the
 * same as a text; STATE(before, after), DESERIALIZE and GET_DERIVATIVES, names that the standards spell in two ways; the
 * types Handle and SavedState.
 */
#define FUNCTION(name) FMI(name) /* after the name has been replaced */
#define NAMED(name) FMI_TEXT(name)

const char *FMI(GetVersion)(void) { return FMI(Version); }

FMI(Status) FMI(SetDebugLogging)(Handle c, FMI(Boolean) loggingOn, size_t nCategories, const FMI(String) categories[])
{
    /* Only failures are logged, and those always: there is nothing to switch. */
    (void)loggingOn, (void)nCategories, (void)categories;
    return (FMI(Status))(allowed(c, ANY_MODE, FMI_TEXT(SetDebugLogging)) ? STATUS_OK : STATUS_ERROR);
}

void FMI(FreeInstance)(Handle c) { instance_free(c); }

FMI(Status) FMI(ExitInitializationMode)(Handle c)
{
    return (FMI(Status))exit_initialization(c, FMI_TEXT(ExitInitializationMode));
}

FMI(Status) FMI(EnterEventMode)(Handle c)
{
    return (FMI(Status))enter(c, EVENT + CONTINUOUS, EVENT, FMI_TEXT(EnterEventMode));
}

FMI(Status) FMI(EnterContinuousTimeMode)(Handle c)
{
    return (FMI(Status))enter(c, EVENT, CONTINUOUS, FMI_TEXT(EnterContinuousTimeMode));
}

FMI(Status) FMI(Terminate)(Handle c)
{
    return (FMI(Status))enter(c, EVENT + CONTINUOUS + STEP, TERMINATED, FMI_TEXT(Terminate));
}

FMI(Status) FMI(Reset)(Handle c)
{
    if (!allowed(c, ANY_MODE, FMI_TEXT(Reset))) return (FMI(Status))STATUS_ERROR;
    instance_reset(c);
    return (FMI(Status))STATUS_OK;
}

FMI(Status) FUNCTION(STATE(Get,))(Handle c, SavedState *state)
{
    return (FMI(Status))save(c, state, NAMED(STATE(Get,)));
}

FMI(Status) FUNCTION(STATE(Set,))(Handle c, SavedState state)
{
    return (FMI(Status))restore(c, state, NAMED(STATE(Set,)));
}

FMI(Status) FUNCTION(STATE(Free,))(Handle c, SavedState *state)
{
    return (FMI(Status))discard_saved(c, state, NAMED(STATE(Free,)));
}

FMI(Status) FUNCTION(STATE(Serialized, Size))(Handle c, SavedState state, size_t *size)
{
    (void)state;
    if (!allowed(c, ANY_MODE, NAMED(STATE(Serialized, Size)))) return (FMI(Status))STATUS_ERROR;
    *size = serialized_size(c);
    return (FMI(Status))STATUS_OK;
}

FMI(Status) FUNCTION(STATE(Serialize,))(Handle c, SavedState state, FMI(Byte) bytes[], size_t size)
{
    return (FMI(Status))serialize(c, state, bytes, size, NAMED(STATE(Serialize,)));
}

FMI(Status) FUNCTION(DESERIALIZE)(Handle c, const FMI(Byte) bytes[], size_t size, SavedState *state)
{
    return (FMI(Status))deserialize(c, bytes, size, state, NAMED(DESERIALIZE));
}

FMI(Status) FMI(CompletedIntegratorStep)(Handle c, FMI(Boolean) noSetFMUStatePriorToCurrentPoint,
                                         FMI(Boolean) *enterEventMode, FMI(Boolean) *terminateSimulation)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    if (!allowed(c, CONTINUOUS, FMI_TEXT(CompletedIntegratorStep))) return (FMI(Status))STATUS_ERROR;
    *enterEventMode = FMI(False);
    *terminateSimulation = FMI(False);
    return (FMI(Status))STATUS_OK;
}

FMI(Status) FMI(SetTime)(Handle c, double time)
{
    return (FMI(Status))set_time(c, time, FMI_TEXT(SetTime));
}

FMI(Status) FMI(SetContinuousStates)(Handle c, const double x[], size_t nx)
{
    return (FMI(Status))set_states(c, x, nx, FMI_TEXT(SetContinuousStates));
}

FMI(Status) FMI(GetContinuousStates)(Handle c, double x[], size_t nx)
{
    return (FMI(Status))get_states(c, x, nx, FMI_TEXT(GetContinuousStates));
}

FMI(Status) FUNCTION(GET_DERIVATIVES)(Handle c, double derivatives[], size_t nx)
{
    return (FMI(Status))get_derivatives(c, derivatives, nx, NAMED(GET_DERIVATIVES));
}

FMI(Status) FMI(GetNominalsOfContinuousStates)(Handle c, double nominals[], size_t nx)
{
    return (FMI(Status))get_nominals(c, nominals, nx, FMI_TEXT(GetNominalsOfContinuousStates));
}

FMI(Status) FMI(GetEventIndicators)(Handle c, double indicators[], size_t ni)
{
    (void)indicators;
    if (!allowed(c, ANY_MODE - INSTANTIATED, FMI_TEXT(GetEventIndicators))) return (FMI(Status))STATUS_ERROR;
    return (FMI(Status))right_count(c, ni, 0, FMI_TEXT(GetEventIndicators));
}
