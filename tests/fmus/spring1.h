/* The plant of the FMI 1.0 behaviours: m v' = u - k x - d v, x' = v, with y = 3 x + 2 u.

   References: 0 x, 1 v, 2 der(x), 3 der(v), 4 u, 5 y, 6 mass, 7 stiffness, 8 damping, 9 square of x. */
#define NV 10
#define NX 2
#ifndef STATES
#define STATES {0, 1}
#endif
#ifndef DERIVATIVES
#define DERIVATIVES {2, 3}
#endif
#define START {1, 0, 0, 0, 0, 0, 2, 8, 0.5, 0}
#include "fmi1_zoo.h"

static void calculate(Model *m) {
    double *r = m->r;
    r[2] = r[1];
    r[3] = (r[4] - r[7] * r[0] - r[8] * r[1]) / r[6];
    r[5] = 3 * r[0] + 2 * r[4];
    r[9] = r[0] * r[0];
}
