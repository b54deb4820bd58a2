/* A sampled controller, every 0.02 s: z1+ = z1 + e, z2+ = 0.3 z2 + e, y = 2 e + 0.5 z1 - z2 with e = u1 - u2; held. */
#define NX 0
#define NU 2
#define NY 1
#define NZ 3
#define PERIOD 0.02
#include "stepped.h"

static void begin(Model *m) {}
static void tick(Model *m) {
    double *z = m->z, e = m->used[0] - m->used[1];
    z[2] = 2 * e + 0.5 * z[0] - z[1];
    z[0] += e;
    z[1] = 0.3 * z[1] + e;
}
static void rates(const double *x, const double *z, const double *u, double *dx) {}
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = z[2]; }
