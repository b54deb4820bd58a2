/* Accelerations of many points, and their derivatives by all states and inputs: the code of an FMU, called in process. */
#include "model.c"

/* All columns of dz = dz/ds + dz/dw W^-1 de/ds; each entry is put in its place once. */
static void differentiate(Model *m, double *slopes)
{
    static double dw[N_MOTION][NW];
    memset(dw, 0, sizeof dw);
    memset(slopes, 0, sizeof(double) * N_MOTION * NX);
    for (int i = 0; i < N_E_MOTION; i++) dw[E_MOTION[i].column][E_MOTION[i].row] = m->jacobian[AT_E_MOTION + i];
    for (int i = 0; i < N_Z_MOTION; i++)
        slopes[Z_MOTION[i].column * NX + Z_MOTION[i].row] = m->jacobian[AT_Z_MOTION + i];
    for (int k = 0; k < N_MOTION; k++) {
        solve(m, dw[k]);
        multiply(Z_W, N_Z_W, m->jacobian + AT_Z_W, dw[k], slopes + k * NX);
    }
}

__attribute__((visibility("default"))) int visit(long count, const double *x, const double *u, double *slopes)
{
    static Model m;
    model_start(&m);
    for (long i = 0; i < count; i++) {
        memcpy(m.x, x + i * NX, sizeof(double) * NX);
        memcpy(m.u, u + i * NU, sizeof(double) * NU);
        m.computed = NOTHING_COMPUTED;
        if (!slopes) {
            if (model_evaluate(&m) != SOLVED) return 1;
            continue;
        }
        if (model_differentiate(&m, MOTION_COMPUTED) != SOLVED) return 1;
        differentiate(&m, slopes);
    }
    return 0;
}
