/* A lag behind a dead zone: x' = d(u) - x, where d is 0 up to 0.3; y = x. */
#define NX 1
#define NU 1
#define NY 1
#include "stepped.h"

static void begin(Model *m) {}
static void rates(const double *x, const double *z, const double *u, double *dx) {
    dx[0] = (fabs(u[0]) <= 0.3 ? 0 : u[0] - copysign(0.3, u[0])) - x[0];
}
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = x[0]; }
