/* FMI 1.0: needs three event iterations at its start, and then schedules an event. */
#define MODEL settles1
#define ON_INITIALIZE info->iterationConverged = fmi1False;
#define ON_EVENT_UPDATE \
    info->iterationConverged = ++m->whole[0] > 2; \
    info->upcomingTimeEvent = fmi1True; \
    info->nextEventTime = 7;
#include "spring1.h"
