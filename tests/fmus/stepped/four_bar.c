/* The four-bar linkage, from the code that fmilin generates for it: model.c and equations.* lie beside this file. */
#include "model.c"
#undef NZ /* a name of stepped.h, too */
#define Model Plant
#define SUBSTEP 4e-3
#include "stepped.h"
#undef Model

static Model inner;
static void begin(Plant *m) {
    model_start(&inner);
    memcpy(m->x, inner.x, sizeof inner.x);
    memcpy(m->u, inner.u, sizeof inner.u);
}
static void fill(const double *x, const double *u) {
    memcpy(inner.x, x, NX * sizeof *x);
    memcpy(inner.u, u, NU * sizeof *u);
    inner.computed = NOTHING_COMPUTED;
    (void)model_evaluate(&inner);
}
static void rates(const double *x, const double *z, const double *u, double *dx) {
    fill(x, u);
    memcpy(dx, inner.z, NX * sizeof *dx);
}
static void outputs(const double *x, const double *z, const double *u, double *y) {
    fill(x, u);
    memcpy(y, inner.z + NX, NY * sizeof *y);
}
