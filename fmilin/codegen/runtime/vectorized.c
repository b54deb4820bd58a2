/* Values and slopes at many points: WIDTH points at a time, each number a vector (SIMD lanes) with one entry for each of them.

   W w = r is solved by W = L D L' without interchanges; whether that was good enough is measured by the backward error
   of w (Oettli and Prager, 1964) and returned for every point. Slopes along all columns follow from W w_z = e with the same
   factors, CHUNK columns at a time, so that they stay in the cache. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sizes.h"

#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif
#define PIECE static __attribute__((noinline)) void
#define CHUNK 16

#if WIDTH > 1
typedef double V __attribute__((vector_size(8 * WIDTH)));
#define ALL(x) ((V){0.0} + (x))
#define ENTRY(v, l) ((v)[l])
#else
typedef double V;
#define ALL(x) (x)
#define ENTRY(v, l) (*((void)(l), &(v)))
#endif

#define ONE_BY_ONE(f) static inline V all_##f(V x) { V y = x; for (int l = 0; l < WIDTH; l++) ENTRY(y, l) = f(ENTRY(x, l)); return y; }
#define TWO_BY_TWO(f) static inline V all_##f(V a, V b) { V y = a; for (int l = 0; l < WIDTH; l++) ENTRY(y, l) = f(ENTRY(a, l), ENTRY(b, l)); return y; }
ONE_BY_ONE(sin) ONE_BY_ONE(cos) ONE_BY_ONE(tan) ONE_BY_ONE(asin) ONE_BY_ONE(acos) ONE_BY_ONE(atan)
ONE_BY_ONE(sinh) ONE_BY_ONE(cosh) ONE_BY_ONE(tanh) ONE_BY_ONE(asinh) ONE_BY_ONE(acosh) ONE_BY_ONE(atanh)
ONE_BY_ONE(exp) ONE_BY_ONE(expm1) ONE_BY_ONE(log) ONE_BY_ONE(log1p) ONE_BY_ONE(sqrt) ONE_BY_ONE(erf)
ONE_BY_ONE(fabs) ONE_BY_ONE(floor) ONE_BY_ONE(ceil)
TWO_BY_TWO(pow) TWO_BY_TWO(atan2) TWO_BY_TWO(hypot) TWO_BY_TWO(copysign) TWO_BY_TWO(fmod) TWO_BY_TWO(remainder)
TWO_BY_TWO(fmin) TWO_BY_TWO(fmax)

typedef struct {
    V s[NS];           /* time, states, inputs, parameters */
    V w[NW];           /* unknowns */
    V whole[NA], a[NA]; /* W and its factors: the lower triangle in the order of elimination */
    V d[NW], r[NW];
    V z[NZ];           /* the quantities */
    V e[NE], z_s[NZS], z_w[NZW]; /* d(r - W w)/ds, dz/ds, dz/dw: nonzeros */
    V right[NW * CHUNK], b[NW * CHUNK], row[NR * CHUNK];
    V v[NV];           /* what several pieces of the equations need */
} Work;

#if WIDTH > 1
#define sin(x) all_sin(ALL(x))
#define cos(x) all_cos(ALL(x))
#define tan(x) all_tan(ALL(x))
#define asin(x) all_asin(ALL(x))
#define acos(x) all_acos(ALL(x))
#define atan(x) all_atan(ALL(x))
#define sinh(x) all_sinh(ALL(x))
#define cosh(x) all_cosh(ALL(x))
#define tanh(x) all_tanh(ALL(x))
#define asinh(x) all_asinh(ALL(x))
#define acosh(x) all_acosh(ALL(x))
#define atanh(x) all_atanh(ALL(x))
#define exp(x) all_exp(ALL(x))
#define expm1(x) all_expm1(ALL(x))
#define log(x) all_log(ALL(x))
#define log1p(x) all_log1p(ALL(x))
#define sqrt(x) all_sqrt(ALL(x))
#define erf(x) all_erf(ALL(x))
#define fabs(x) all_fabs(ALL(x))
#define floor(x) all_floor(ALL(x))
#define ceil(x) all_ceil(ALL(x))
#define pow(x, y) all_pow(ALL(x), ALL(y))
#define atan2(x, y) all_atan2(ALL(x), ALL(y))
#define hypot(x, y) all_hypot(ALL(x), ALL(y))
#define copysign(x, y) all_copysign(ALL(x), ALL(y))
#define fmod(x, y) all_fmod(ALL(x), ALL(y))
#define remainder(x, y) all_remainder(ALL(x), ALL(y))
#define fmin(x, y) all_fmin(ALL(x), ALL(y))
#define fmax(x, y) all_fmax(ALL(x), ALL(y))
#endif

#include "equations.c"

/* W = L D L', in place; 1/D goes to d. */
static void factorize(Work *m)
{
    const int *target = TARGETS;
    memcpy(m->a, m->whole, sizeof m->a);
    for (int k = 0; k < N_UNKNOWNS; k++) {
        V d = 1.0 / m->a[DIAGONAL[k]];
        m->d[k] = d;
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) {
            V l = m->a[BELOW_SLOT[i]] * d;
            for (int j = BELOW[k]; j <= i; j++) m->a[*target++] -= l * m->a[BELOW_SLOT[j]];
        }
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) m->a[BELOW_SLOT[i]] *= d;
    }
}

#define SOLVE(name, COLUMNS) \
    static void name(const Work *m, V *b) \
    { \
        for (int k = 0; k < N_UNKNOWNS; k++) { \
            V *p = b + PIVOT[k] * COLUMNS; \
            for (int i = BELOW[k]; i < BELOW[k + 1]; i++) { \
                V l = m->a[BELOW_SLOT[i]], *q = b + BELOW_ROW[i] * COLUMNS; \
                for (int c = 0; c < COLUMNS; c++) q[c] -= l * p[c]; \
            } \
        } \
        for (int k = N_UNKNOWNS - 1; k >= 0; k--) { \
            V d = m->d[k], *p = b + PIVOT[k] * COLUMNS; \
            for (int c = 0; c < COLUMNS; c++) p[c] *= d; \
            for (int i = BELOW[k]; i < BELOW[k + 1]; i++) { \
                V l = m->a[BELOW_SLOT[i]], *q = b + BELOW_ROW[i] * COLUMNS; \
                for (int c = 0; c < COLUMNS; c++) p[c] -= l * q[c]; \
            } \
        } \
    }
SOLVE(solve_one, 1)
SOLVE(solve_chunk, CHUNK)

/* r - W w, and |W| |w| + |r|. */
static void residual_of(const Work *m, V *rest, V *size)
{
    for (int i = 0; i < N_UNKNOWNS; i++) {
        rest[i] = m->r[i];
        size[i] = all_fabs(m->r[i]);
    }
    for (int k = 0; k < N_UNKNOWNS; k++) {
        int row = PIVOT[k];
        V x = m->whole[DIAGONAL[k]] * m->w[row];
        rest[row] -= x;
        size[row] += all_fabs(x);
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) {
            int other = BELOW_ROW[i];
            V entry = m->whole[BELOW_SLOT[i]], from = entry * m->w[row], back = entry * m->w[other];
            rest[other] -= from;
            size[other] += all_fabs(from);
            rest[row] -= back;
            size[row] += all_fabs(back);
        }
    }
}

/* Largest entry of a column, of all points. */
static double largest(const V *column, int l)
{
    double result = 0.0;
    for (int i = 0; i < N_UNKNOWNS; i++) {
        V size = all_fabs(column[i]);
        if (!(ENTRY(size, l) <= result)) result = ENTRY(size, l);
    }
    return result;
}

/* |W| 1, row by row. */
static void sums_of(const Work *m, V *sums)
{
    for (int k = 0; k < N_UNKNOWNS; k++) sums[PIVOT[k]] = all_fabs(m->whole[DIAGONAL[k]]);
    for (int k = 0; k < N_UNKNOWNS; k++)
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) {
            V entry = all_fabs(m->whole[BELOW_SLOT[i]]);
            sums[BELOW_ROW[i]] += entry;
            sums[PIVOT[k]] += entry;
        }
}

/* w with one step of refinement (Skeel, 1980), and whether |r - W w| <= GOOD (|W| |w| + |r|) in every row then; where
   unknowns vanish, as accelerations at rest, up to the rounding of the largest unknown, as interchanges leave it.
   Returns whether the factors are so rough that the slopes need that step, too: pivots were small. */
static int solve(Work *m, unsigned char *good)
{
    V rest[NW], size[NW], sums[NW];
    int rough = 0;
    memcpy(m->w, m->r, sizeof m->w);
    solve_one(m, m->w);
    residual_of(m, rest, size);
    for (int l = 0; l < WIDTH; l++) rough |= !(largest(rest, l) <= GOOD * largest(size, l));
    solve_one(m, rest);
    for (int i = 0; i < N_UNKNOWNS; i++) m->w[i] += rest[i];
    residual_of(m, rest, size);
    sums_of(m, sums);
    for (int l = 0; l < WIDTH; l++) {
        double rounding = 0x1p-53 * largest(m->w, l);
        good[l] = 1;
        for (int i = 0; i < N_UNKNOWNS; i++) {
            V distance = all_fabs(rest[i]);
            if (!(ENTRY(distance, l) <= GOOD * ENTRY(size[i], l) + rounding * ENTRY(sums[i], l))) good[l] = 0;
        }
    }
    return rough;
}

/* Take an entry of W times a row of b off a row of the right-hand side. */
static inline void take_off(V *right, V entry, const V *b, int row, int column)
{
    for (int c = 0; c < CHUNK; c++) right[row * CHUNK + c] -= entry * b[column * CHUNK + c];
}

/* One step of refinement of the columns in b, whose right-hand sides are in right. */
static void refine(Work *m)
{
    for (int k = 0; k < N_UNKNOWNS; k++) {
        take_off(m->right, m->whole[DIAGONAL[k]], m->b, PIVOT[k], PIVOT[k]);
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) {
            take_off(m->right, m->whole[BELOW_SLOT[i]], m->b, BELOW_ROW[i], PIVOT[k]);
            take_off(m->right, m->whole[BELOW_SLOT[i]], m->b, PIVOT[k], BELOW_ROW[i]);
        }
    }
    solve_chunk(m, m->right);
    for (int i = 0; i < N_UNKNOWNS * CHUNK; i++) m->b[i] += m->right[i];
}

/* Columns first .. first + CHUNK of the slopes. */
static void slopes(Work *m, int first, double *restrict J, int used, int rough)
{
    int columns = N_COLUMNS - first < CHUNK ? N_COLUMNS - first : CHUNK, chunk = first / CHUNK;
    memset(m->b, 0, sizeof m->b);
    for (int i = E_CHUNK[chunk]; i < E_CHUNK[chunk + 1]; i++) m->b[E_ROW[i] * CHUNK + E_COLUMN[i] - first] = m->e[i];
    if (rough) memcpy(m->right, m->b, sizeof m->b);
    solve_chunk(m, m->b);
    if (rough) refine(m);
    memset(m->row, 0, sizeof m->row);
    for (int i = Z_S_CHUNK[chunk]; i < Z_S_CHUNK[chunk + 1]; i++)
        m->row[Z_S_ROW[i] * CHUNK + Z_S_COLUMN[i] - first] = m->z_s[i];
    for (int i = 0; i < N_Z_W; i++) {
        V slope = m->z_w[i], *to = m->row + Z_W_ROW[i] * CHUNK;
        const V *from = m->b + Z_W_COLUMN[i] * CHUNK;
        for (int c = 0; c < CHUNK; c++) to[c] += slope * from[c];
    }
    for (int i = 0; i < N_ROWS; i++)
        for (int l = 0; l < used; l++) {
            double *to = J + ((size_t)l * N_QUANTITIES + (size_t)ROWS[i]) * N_COLUMNS + first;
            for (int c = 0; c < columns; c++) to[c] = ENTRY(m->row[i * CHUNK + c], l);
        }
}

OUT size_t work_size(void) { return sizeof(Work); }

/* s (count, N_S), z (count, N_QUANTITIES), J (count, N_QUANTITIES, N_COLUMNS): rows that are not constant are filled;
   without J the quantities alone, by the same operations. */
OUT void run(const double *s, double *z, double *J, unsigned char *good, long count, void *work)
{
    Work *m = work;
    for (long p = 0; p < count; p += WIDTH) {
        int used = count - p < WIDTH ? (int)(count - p) : WIDTH;
        unsigned char fine[WIDTH];
        for (int i = 0; i < N_S; i++)
            for (int l = 0; l < WIDTH; l++) ENTRY(m->s[i], l) = s[(p + (l < used ? l : 0)) * N_S + i];
        memset(m->whole, 0, sizeof m->whole);
        equations_system(m);
        factorize(m);
        int rough = solve(m, fine);
        equations_values(m);
        for (int l = 0; l < used; l++) {
            good[p + l] = fine[l];
            for (int i = 0; i < N_QUANTITIES; i++) z[(p + l) * N_QUANTITIES + i] = ENTRY(m->z[i], l);
        }
        if (!J) continue;
        equations_slopes(m);
        for (int first = 0; first < N_COLUMNS; first += CHUNK)
            slopes(m, first, J + (size_t)p * N_QUANTITIES * N_COLUMNS, used, rough);
    }
}
