/* Rates and outputs of a model at one point in one call, for callers in the same process. */
#include "model.c"

#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif

/* A pivot of the scaled W below this is close to singular: what solves with more care shall answer there. */
#define DOUBTFUL 1e-6

OUT size_t work_size(void) { return sizeof(Model); }

/* z (NX + NY) for s = (t, x, u, p); 1 where W is singular, close to it, or no number, and z is not to be used. */
OUT int run(const double *s, double *z, Model *m)
{
    m->time = s[0];
    memcpy(m->x, s + 1, NX * sizeof(double));
    memcpy(m->u, s + 1 + NX, NU * sizeof(double));
    memcpy(m->p, s + 1 + NX + NU, NP * sizeof(double));
    m->computed = NOTHING_COMPUTED;
    if (model_evaluate(m) != SOLVED) return 1;
    for (int k = 0; k < NW; k++)
        if (!(fabs(m->W[k * NW + k]) >= DOUBTFUL)) return 1;
    memcpy(z, m->z, NZ * sizeof(double));
    return 0;
}
