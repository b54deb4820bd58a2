/* The kind of model that is a step in C, of numbers in to numbers out, taken at every sample: component.c, made for it.
 * identity.h has MODEL_TOKEN; N_READ, how many inputs there are; START_VALUES of these; PLACES, which of them each number
 * in stands for.
 */
#ifndef BLOCK_H
#define BLOCK_H

#define component_DECLARATIONS_ONLY
#include "component.c"
#undef component_DECLARATIONS_ONLY

#define KIND_SOURCE "block.c"
#define KIND_HAS_DERIVATIVES 0
#define KIND_IS_SAMPLED(instance) ((instance)->kind.sample_time > 0.0)

/* What a saved state has: doubles all of it. Arrays have one number at least. */
typedef struct {
    double held[N_READ + 1];             /* inputs of the last sample */
    double shown[component_OUTPUTS + 1]; /* outputs of the last sample that was taken */
    component memory;                    /* before the step of the next one */
} Kept;

typedef struct {
    Kept kept;
    double sample_time, time;
    double u[N_READ + 1], slope[N_READ + 1], z[component_OUTPUTS + 1];
    int is_known;
} Kind;

#endif
