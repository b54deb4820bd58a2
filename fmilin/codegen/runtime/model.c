/* Values and directional derivatives of a model. Everything here is static: this file is included. */
#include "model.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "equations.c"

#define FIRST_COLUMN(k) ((k) > BAND_LOWER ? (k) - BAND_LOWER : 0)
#define LAST_ROW(k) ((k) + BAND_LOWER < NW ? (k) + BAND_LOWER : NW - 1)
#define LAST_COLUMN(k) ((k) + BAND_LOWER + BAND_UPPER < NW ? (k) + BAND_LOWER + BAND_UPPER : NW - 1)

static void model_start(Model *m)
{
    m->time = 0.0;
    for (int i = 0; i < NX; i++) m->x[i] = X_START[i];
    for (int i = 0; i < NU; i++) m->u[i] = U_START[i];
    for (int i = 0; i < NP; i++) m->p[i] = P_START[i];
    m->computed = NOTHING_COMPUTED;
}

/* Zero where the band may fill in: row interchanges widen it to the right by BAND_LOWER. */
static void clear_band(Model *m)
{
    for (int i = 0; i < NW; i++) {
        int first = FIRST_COLUMN(i);
        memset(m->W + i * NW + first, 0, sizeof(double) * (size_t)(LAST_COLUMN(i) - first + 1));
    }
}

/* The inverse of the power of two next to a size: scaling by it is exact. */
static double inverse_power_of_two(double size)
{
    int exponent;
    (void)frexp(size, &exponent);
    return ldexp(1.0, -exponent);
}

/* Scale the rows, then the columns, so that the largest entry of each lies between 1/2 and 1. */
static int equilibrate(Model *m)
{
    double sizes[AT_LEAST_ONE(NW)] = {0.0};
    for (int i = 0; i < NW; i++) {
        double largest = 0.0, sum = 0.0;
        for (int j = FIRST_COLUMN(i); j <= LAST_COLUMN(i); j++) {
            double size = fabs(m->W[i * NW + j]);
            sum += size;
            if (size > largest) largest = size;
        }
        if (!(sum <= DBL_MAX)) return NOT_A_NUMBER;
        m->row_scale[i] = largest < DBL_MIN ? 1.0 : inverse_power_of_two(largest);
        for (int j = FIRST_COLUMN(i); j <= LAST_COLUMN(i); j++) {
            double size = fabs(m->W[i * NW + j] *= m->row_scale[i]);
            if (size > sizes[j]) sizes[j] = size;
        }
    }
    for (int j = 0; j < NW; j++) m->column_scale[j] = sizes[j] < DBL_MIN ? 1.0 : inverse_power_of_two(sizes[j]);
    for (int i = 0; i < NW; i++)
        for (int j = FIRST_COLUMN(i); j <= LAST_COLUMN(i); j++) m->W[i * NW + j] *= m->column_scale[j];
    return SOLVED;
}

/* L U of the scaled W with row interchanges, inside the band (Golub and Van Loan, Matrix Computations, 4.3). */
static int factor(Model *m)
{
    const double negligible = (NW + 16) * DBL_EPSILON;
    int status = equilibrate(m);
    if (status != SOLVED) return status;
    for (int k = 0; k < NW; k++) {
        int p = k;
        for (int i = k + 1; i <= LAST_ROW(k); i++)
            if (fabs(m->W[i * NW + k]) > fabs(m->W[p * NW + k])) p = i;
        if (!(fabs(m->W[p * NW + k]) > negligible)) {
            m->culprit = k;
            return SINGULAR;
        }
        m->pivot[k] = p;
        double *K = m->W + k * NW, *P = m->W + p * NW;
        for (int j = k; j <= LAST_COLUMN(k); j++) {
            double kept = K[j];
            K[j] = P[j];
            P[j] = kept;
        }
        for (int i = k + 1; i <= LAST_ROW(k); i++) {
            double *I = m->W + i * NW;
            double l = I[k] /= K[k];
            if (l == 0.0) continue;
            for (int j = k + 1; j <= LAST_COLUMN(k); j++) I[j] -= l * K[j];
        }
    }
    return SOLVED;
}

/* b := W^-1 b */
static void solve(const Model *m, double *b)
{
    for (int i = 0; i < NW; i++) b[i] *= m->row_scale[i];
    for (int k = 0; k < NW; k++) {
        double kept = b[m->pivot[k]];
        b[m->pivot[k]] = b[k];
        b[k] = kept;
        for (int i = k + 1; i <= LAST_ROW(k); i++) b[i] -= m->W[i * NW + k] * kept;
    }
    for (int k = NW - 1; k >= 0; k--) {
        for (int j = k + 1; j <= LAST_COLUMN(k); j++) b[k] -= m->W[k * NW + j] * b[j];
        b[k] /= m->W[k * NW + k];
    }
    for (int j = 0; j < NW; j++) b[j] *= m->column_scale[j];
}

#if NEWTON
/* Newton's iteration from w at the present point, as long as its steps shrink; as numerics/codegen/implicit.py. */
static int correct(Model *m)
{
    double previous = DBL_MAX;
    for (int k = 0; k < ITERATIONS; k++) {
        clear_band(m);
        equations_system(m);
        int largest = 0;
        for (int i = 1; i < NW; i++)
            if (fabs(m->dw[i]) > fabs(m->dw[largest])) largest = i;
        int status = factor(m);
        if (status != SOLVED) return status;
        solve(m, m->dw);
        double step = 0.0;
        for (int j = 0; j < NW; j++) {
            m->w[j] += m->dw[j];
            double size = fabs(m->w[j]) > W_SIZES[j] ? fabs(m->w[j]) : W_SIZES[j], part = fabs(m->dw[j]) / size;
            if (!(part <= step)) step = part;
        }
        if (step <= CONVERGED || (step <= STALLED && step > CONTRACTION * previous)) return SOLVED;
        m->culprit = largest;
        if (!(step <= CONTRACTION * previous)) break;
        previous = step;
    }
    return NOT_FOUND;
}

/* Solve R(t, x, u, p, w) = 0 from the guess, and in parts of the way from its point where that does not go. */
static int solve_system(Model *m)
{
    double to_x[AT_LEAST_ONE(NX)], to_u[AT_LEAST_ONE(NU)], to_p[AT_LEAST_ONE(NP)], w[NW], to_time = m->time;
    memcpy(m->w, W_GUESS, sizeof w);
    int status = correct(m);
    if (status == SOLVED) return SOLVED;
    memcpy(to_x, m->x, sizeof to_x);
    memcpy(to_u, m->u, sizeof to_u);
    memcpy(to_p, m->p, sizeof to_p);
    memcpy(w, W_GUESS, sizeof w);
    for (double gone = 0.0, part = 0.5; gone < 1.0 && part >= SHORTEST;) {
        double to = gone + part < 1.0 ? gone + part : 1.0;
        int there = to == 1.0;
        m->time = there ? to_time : (1.0 - to) * T_GUESS + to * to_time;
        for (int i = 0; i < NX; i++) m->x[i] = there ? to_x[i] : (1.0 - to) * X_GUESS[i] + to * to_x[i];
        for (int i = 0; i < NU; i++) m->u[i] = there ? to_u[i] : (1.0 - to) * U_GUESS[i] + to * to_u[i];
        for (int i = 0; i < NP; i++) m->p[i] = there ? to_p[i] : (1.0 - to) * P_GUESS[i] + to * to_p[i];
        memcpy(m->w, w, sizeof w);
        status = correct(m);
        if (status == SOLVED) {
            memcpy(w, m->w, sizeof w);
            gone = to;
            part *= 2.0;
        } else {
            part /= 2.0;
        }
    }
    m->time = to_time;
    memcpy(m->x, to_x, sizeof to_x);
    memcpy(m->u, to_u, sizeof to_u);
    memcpy(m->p, to_p, sizeof to_p);
    return status;
}
#else
/* w := W^-1 r */
static int solve_system(Model *m)
{
    clear_band(m);
    equations_system(m);
    int status = factor(m);
    if (status == SOLVED) solve(m, m->w);
    return status;
}
#endif

/* Bring w and z = (f, c) to the present point. Returns SOLVED, or what stands in the way. */
static int model_evaluate(Model *m)
{
    if (m->computed >= VALUES_COMPUTED) return SOLVED;
    int status = solve_system(m);
    if (status != SOLVED) return status;
    equations_values(m);
    m->computed = VALUES_COMPUTED;
    return SOLVED;
}

#if HAS_DERIVATIVES
/* Bring the partial derivatives to the present point: for states and inputs, or for all columns. */
static int model_differentiate(Model *m, int wanted)
{
    int status = model_evaluate(m);
    if (status != SOLVED) return status;
    if (m->computed < MOTION_COMPUTED) equations_motion(m);
    if (m->computed < ALL_COMPUTED && wanted == ALL_COMPUTED) equations_settings(m);
    if (m->computed < wanted) m->computed = wanted;
    return SOLVED;
}

/* Whether a vector over all columns asks for time or a parameter. */
static int columns_wanted(const double *ds)
{
    for (int i = N_MOTION; i < NS; i++)
        if (ds[i] != 0.0) return ALL_COMPUTED;
    return MOTION_COMPUTED;
}

/* result += (partial derivatives at these entries) times seed */
static void multiply(const Entry *entries, int count, const double *partials, const double *seed, double *result)
{
    for (int k = 0; k < count; k++) result[entries[k].row] += partials[k] * seed[entries[k].column];
}

/* m->dz along m->ds, with e(s; w) = r - W w: dw = W^-1 (de/ds ds), dz = dz/ds ds + dz/dw dw. */
static int model_product(Model *m)
{
    int wanted = columns_wanted(m->ds);
    int status = model_differentiate(m, wanted);
    if (status != SOLVED) return status;
    memset(m->dw, 0, sizeof m->dw);
    memset(m->dz, 0, sizeof m->dz);
    multiply(E_MOTION, N_E_MOTION, m->jacobian + AT_E_MOTION, m->ds, m->dw);
    multiply(Z_MOTION, N_Z_MOTION, m->jacobian + AT_Z_MOTION, m->ds, m->dz);
    if (wanted == ALL_COMPUTED) {
        multiply(E_SETTINGS, N_E_SETTINGS, m->jacobian + AT_E_SETTINGS, m->ds, m->dw);
        multiply(Z_SETTINGS, N_Z_SETTINGS, m->jacobian + AT_Z_SETTINGS, m->ds, m->dz);
    }
    solve(m, m->dw);
    multiply(Z_W, N_Z_W, m->jacobian + AT_Z_W, m->dw, m->dz);
    return SOLVED;
}
#endif
