/* A model in numbers: W w = r, z = (f, c) with x' = f and outputs c, and their exact derivatives.
 *
 * Written by hand; the sizes come from equations.h, the equations from equations.c, which are made
 * for each model. Everything that a model needs lies in one struct without pointers: instances do
 * not know of each other, and a copy of the struct is a copy of the model.
 */
#ifndef MODEL_H
#define MODEL_H

#include "equations.h"

#include <stddef.h>

#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)
#define NZ (NX + NY)          /* derivatives and outputs */
#define N_MOTION (NX + NU)    /* columns: states, inputs */
#define NS (NX + NU + 1 + NP) /* columns: states, inputs, time, parameters */

/* Compilers take more than proportional time for long functions, so the pieces of the equations stay apart. */
#ifdef __GNUC__
#define PIECE static __attribute__((noinline)) void
#else
#define PIECE static void
#endif

/* What is computed at the present point. */
enum { NOTHING_COMPUTED, VALUES_COMPUTED, MOTION_COMPUTED, ALL_COMPUTED };

/* How the system W w = r came out, or Newton's iteration with its steps W dw = r. */
enum { SOLVED, SINGULAR, NOT_A_NUMBER, NOT_FOUND };

typedef struct {
    double time;
    double x[AT_LEAST_ONE(NX)]; /* states */
    double u[AT_LEAST_ONE(NU)]; /* inputs */
    double p[AT_LEAST_ONE(NP)]; /* parameters */

    int computed;
    int culprit; /* the unknown for which W has no pivot; the equation that is not solved */

    double W[AT_LEAST_ONE(NW * NW)]; /* by rows, inside a band; becomes L and U */
    double w[AT_LEAST_ONE(NW)];      /* r, then W^-1 r */
    double row_scale[AT_LEAST_ONE(NW)];
    double column_scale[AT_LEAST_ONE(NW)];
    int pivot[AT_LEAST_ONE(NW)];

    double z[AT_LEAST_ONE(NZ)];         /* f, then c */
    double v[AT_LEAST_ONE(NV)];         /* intermediate results that more than one function needs */
    double jacobian[AT_LEAST_ONE(NJ)];  /* the non-zero partial derivatives */
    double dw[AT_LEAST_ONE(NW)];
    double ds[NS];                      /* room for the caller's seeds and results */
    double dz[AT_LEAST_ONE(NZ)];
} Model;

/* Where a partial derivative belongs. */
typedef struct {
    int row, column;
} Entry;

#endif
