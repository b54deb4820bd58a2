/* Needs two event iterations and schedules a time event. */
#define ON_NEW_DISCRETE_STATES \
    info->newDiscreteStatesNeeded = m->r[7]++ < 1; \
    info->nextEventTimeDefined = fmi2True; \
    info->nextEventTime = 1.5;
#include "spring.h"
