/* A mass with dry friction, at rest: v' = u - 0.3 sign(v), and 0 as long as it stands and |u| <= 0.3; y = x. */
#define NX 2
#define NU 1
#define NY 1
#include "stepped.h"

static void begin(Model *m) {}
static void rates(const double *x, const double *z, const double *u, double *dx) {
    dx[0] = x[1];
    dx[1] = x[1] > 0 ? u[0] - 0.3 : x[1] < 0 ? u[0] + 0.3 : fabs(u[0]) <= 0.3 ? 0 : u[0] - copysign(0.3, u[0]);
}
static void outputs(const double *x, const double *z, const double *u, double *y) { y[0] = x[0]; }
