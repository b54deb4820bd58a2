/* The kind of model whose equations are matrices, read from resources/linear.bin:
 *
 *     x' = f0 + A (x - x0) + B (u - u0),  z = g0 + C (x - x0) + D (u - u0),
 *
 * or, sampled, x[k+1] = x0 + f0 + A (x[k] - x0) + B (u[k] - u0), z of the last sample until the next one, as samples.c
 * tells. The code is the same for every linear model: a binary of it serves them all.
 */
#ifndef LINEAR_H
#define LINEAR_H

#include <stddef.h>

#define KIND_SOURCE "linear.c"
#define KIND_HAS_DERIVATIVES 1
#define KIND_IS_SAMPLED(instance) ((instance)->kind.sample_time > 0.0)

enum { N_TRANSITIONS = 4 };

/* x(h) = x0 + E (x - x0) + F (u - u0; 1) + G u', exactly, for one step size h. */
typedef struct {
    double h;
    double *E; /* (nx, nx) */
    double *F; /* (nx, nu + 1) */
    double *G; /* (nx, nu + 1); its last column is not used */
} Transition;

typedef struct {
    void *file; /* all that was read; the pointers to const point into it */
    const double *A, *B, *C, *D; /* by rows */
    const double *f0, *x0, *u0, *g0, *x_start, *u_start;
    double sample_time;
    size_t n_outputs; /* the first of the computed variables; the others are dependent states */
    double *room;     /* for all that follows */
    double *dx, *du, *next;
    double *balance;  /* (nx,): powers of two, D in D^-1 A D */
    double norm;      /* of that, the largest sum of a column */
    double time;
    Transition transitions[N_TRANSITIONS];
    int oldest; /* of the transitions */
    int rates_known, outputs_known, others_known;
} Kind;

#endif
