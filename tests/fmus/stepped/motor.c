/* A DC motor with a load: L i' = V - R i - K w, J w' = K i - c w - load, angle' = w. Outputs: w, current, power V i. */
#define NX 3
#define NU 2
#define NY 3
#include "stepped.h"

static void begin(Model *m) { m->x[2] = 0.25; }
static void rates(const double *x, const double *z, const double *u, double *dx) {
    const double L = 0.5, R = 1, K = 0.1, J = 0.02, c = 0.1;
    dx[0] = (u[0] - R * x[0] - K * x[1]) / L;
    dx[1] = (K * x[0] - c * x[1] - u[1]) / J;
    dx[2] = x[1];
}
static void outputs(const double *x, const double *z, const double *u, double *y) {
    y[0] = x[1];
    y[1] = x[0];
    y[2] = u[0] + x[2]; /* feeds through */
}
