/* A ball that falls and bounces: h' = v, v' = u - 9.81, and v+ = -0.7 v where h < 0 and v < 0; y = h. */
#define NX 2
#define NU 1
#define NY 1
#define EVENTS
#include "stepped.h"

static void begin(Model *m) { m->x[0] = 1; }
static void after_substep(Model *m) {
    if (m->x[0] < 0 && m->x[1] < 0) m->x[0] = 0, m->x[1] *= -0.7;
}
static void rates(const double *x, const double *z, const double *u, double *dx) { dx[0] = x[1], dx[1] = u[0] - 9.81; }
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = x[0]; }
