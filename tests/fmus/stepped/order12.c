/* Six oscillators in a row of springs, order 12, the slowest two with 0.1% and 0.3% of damping; a slight cubic spring.

   q_i'' = -w_i^2 (q_i + cubic q_i^3) - 2 d_i w_i q_i' + b_i (u1 + (-1)^i u2 / 2) + 0.1 w_i^2 (q_(i-1) + q_(i+1)),
   y1 = sum q_i, y2 = sum (-1)^i q_i' / w_i. */
#define NX 12
#define NU 2
#define NY 2
#include "stepped.h"

#ifndef CUBIC
#define CUBIC 0.3
#endif
static const double w[] = {1, 2.2, 3.7, 5.1, 7.3, 9}, d[] = {1e-3, 3e-3, 0.02, 0.05, 0.03, 0.1};
static void begin(Model *m) {}
static void rates(const double *x, const double *z, const double *u, double *dx) {
    for (int i = 0; i < 6; i++) {
        double sign = i % 2 ? -1 : 1, beside = (i ? x[i - 1] : 0) + (i < 5 ? x[i + 1] : 0);
        dx[i] = x[6 + i];
        dx[6 + i] = -w[i] * w[i] * (x[i] + CUBIC * x[i] * x[i] * x[i] - 0.1 * beside) - 2 * d[i] * w[i] * x[6 + i]
                    + (1 + 0.2 * i) * (u[0] + sign * u[1] / 2);
    }
}
static void outputs(const double *x, const double *z, const double *u, double *y) {
    y[0] = y[1] = 0;
    for (int i = 0; i < 6; i++) y[0] += x[i], y[1] += (i % 2 ? -1 : 1) * x[6 + i] / w[i];
}
