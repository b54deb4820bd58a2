/* A lag under sampled feedback, every 0.2 s: x' = -x + z, z+ = u - x / 2, held between; y = x. */
#define NX 1
#define NU 1
#define NY 1
#define NZ 1
#define PERIOD 0.2
#include "stepped.h"

static void begin(Model *m) {}
static void tick(Model *m) { m->z[0] = m->used[0] - m->x[0] / 2; }
static void rates(const double *x, const double *z, const double *u, double *dx) { dx[0] = z[0] - x[0]; }
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = x[0]; }
