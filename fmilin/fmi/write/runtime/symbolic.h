/* The kind of model whose equations are C code, made for it: see model.h. identity.h has MODEL_TOKEN. */
#ifndef SYMBOLIC_H
#define SYMBOLIC_H

#include "model.h"

#define KIND_SOURCE "symbolic.c"
#define KIND_HAS_DERIVATIVES HAS_DERIVATIVES
#define KIND_IS_SAMPLED(instance) ((void)(instance), 0)

enum { N_STAGES = 7 };

typedef struct {
    Model model;
    double slope[AT_LEAST_ONE(NU)];
    double step; /* which the integrator tries next */
    double stages[N_STAGES][AT_LEAST_ONE(NX)];
    double x_before[AT_LEAST_ONE(NX)], u_before[AT_LEAST_ONE(NU)];
} Kind;

#endif
