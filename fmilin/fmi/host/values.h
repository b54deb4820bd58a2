/* Handlers of values that FMI 1.0 and 2.0 share, and categories of messages. */
#ifndef FMILIN_VALUES_H
#define FMILIN_VALUES_H

#include "fmi.h"

/* Real, Integer, Boolean and String, where a Boolean is stored as `flag`. */
int32_t get_early_values(struct fmu *fmu, const struct call *call, enum storage flag);
int32_t set_early_values(struct fmu *fmu, const struct call *call, enum storage flag);

/* Pointers to the categories of a SET_DEBUG_LOGGING, in scratch memory. */
int32_t list_categories(struct fmu *fmu, const struct call *call, const char ***categories, size_t *count);

#endif
