/* Fifteen lags side by side, each fed by its input, by its neighbour, and a little by all; each is an output. */
#define NX 15
#define NU 15
#define NY 15
#define SUBSTEP 0.02
#include "stepped.h"

static void begin(Model *m) {}
static void rates(const double *x, const double *z, const double *u, double *dx) {
    double sum = 0;
    for (int i = 0; i < NU; i++) sum += 0.01 * (i + 1) * u[i];
    for (int i = 0; i < NX; i++) dx[i] = -(1 + 0.2 * i) * x[i] + (i ? 0.5 * x[i - 1] : 0) + u[i] + (i % 2 ? sum : -sum);
}
static void outputs(const double *x, const double *z, const double *u, double *y) {
    for (int i = 0; i < NY; i++) y[i] = x[i];
}
