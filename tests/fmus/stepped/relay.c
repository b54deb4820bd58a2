/* A relay that turns off at 1 and on again at 0.5, and a lag that it heats: x' = u + on - x; y = x. */
#define NX 1
#define NU 1
#define NY 1
#define NZ 1
#define EVENTS
#include "stepped.h"

static void begin(Model *m) { m->z[0] = 2; }
static void after_substep(Model *m) { m->z[0] = m->x[0] > 1 ? 0 : m->x[0] < 0.5 ? 2 : m->z[0]; }
static void rates(const double *x, const double *z, const double *u, double *dx) { dx[0] = u[0] + z[0] - x[0]; }
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = x[0]; }
