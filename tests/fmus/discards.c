/* Discards beyond x = 10, errs for good beyond 100, is fatally wrong beyond 1000. */
#define ON_GET_DERIVATIVES \
    if (m->r[0] > 1000) return fmi2Fatal; \
    if (m->r[0] > 100) { m->dead = 1; return fmi2Error; } \
    if (m->r[0] > 10) { SAY(fmi2Discard, "x = %g is out of range", m->r[0]); return fmi2Discard; }
#include "spring.h"
