/* Values and slopes at many points: WIDTH points at a time, each number a vector (SIMD lanes) with one entry for each of them.

   A SYMMETRIC W w = r is solved by W = L D L' without interchanges; whether that was good enough is measured by the backward
   error of w (Oettli and Prager, 1964). Where it was not, and where W is not symmetric, W is factorized lane by lane, as a
   DENSE matrix with row interchanges; with NEWTON, W and r depend on w, and W^-1 r is a step of Newton's iteration. It is
   returned for every point whether w is good. Slopes along all columns follow from W w_z = e with the same factors, CHUNK
   columns at a time, so that they stay in the cache. */
#ifndef __CUDACC_RTC__ /* the compiler for GPUs has no headers: device.h defines what is needed of these */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#endif

#include "sizes.h"

#ifndef OUT
#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif
#define PIECE static __attribute__((noinline)) void
#endif
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

#if DENSE
/* L U of one W, scaled, with row interchanges. */
typedef struct {
    double a[NW * NW];
    double row_scale[NW], column_scale[NW];
    int pivot[NW];
} Factors;
#endif

typedef struct {
    V s[NS];           /* time, states, inputs, parameters */
    V w[NW];           /* unknowns */
    V whole[NA];       /* W: the lower triangle in the order of elimination if symmetric, else row by row */
#if SYMMETRIC
    V a[NA], d[NW];    /* its factors */
#endif
#if DENSE
    Factors factors[WIDTH];
    unsigned char by_lane[WIDTH]; /* at which points these are used */
#endif
    V r[NW];
    V z[NZ];           /* the quantities */
    V e[NE], z_s[NZS], z_w[NZW]; /* d(r - W w)/ds, dz/ds, dz/dw: nonzeros */
    V right[NW * CHUNK], right_of_lanes[NW * CHUNK], b[NW * CHUNK], row[NR * CHUNK];
#if INVARIANTS_ALONE
    V h[N_INVARIANTS], h_x[NHX]; /* the invariants, and the nonzeros of their gradient along the states */
    V c[NC];                     /* what several pieces of these need */
#endif
    V v[NV];           /* what several pieces of the equations need */
} Work;

/* The absolute value at one point: fabs is that of a vector below. */
static inline double absolute(double x) { return fabs(x); }

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

#if SYMMETRIC
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
static int eliminate_all(Work *m, unsigned char *good)
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
#endif

#if DENSE
/* The inverse of the power of two next to a size: scaling by it is exact. */
static double inverse_power_of_two(double size)
{
    int exponent;
    (void)frexp(size, &exponent);
    return ldexp(1.0, -exponent);
}

/* Scale the rows of a matrix, then its columns, so that the largest entry of each lies between 1/2 and 1. */
static int equilibrate(Factors *f)
{
    double sizes[NW] = {0.0};
    for (int i = 0; i < N_UNKNOWNS; i++) {
        double largest = 0.0, sum = 0.0, *row = f->a + i * N_UNKNOWNS;
        for (int j = 0; j < N_UNKNOWNS; j++) {
            double size = absolute(row[j]);
            sum += size;
            if (size > largest) largest = size;
        }
        if (!(sum <= DBL_MAX)) return 0;
        f->row_scale[i] = largest < DBL_MIN ? 1.0 : inverse_power_of_two(largest);
        for (int j = 0; j < N_UNKNOWNS; j++) {
            double size = absolute(row[j] *= f->row_scale[i]);
            if (size > sizes[j]) sizes[j] = size;
        }
    }
    for (int j = 0; j < N_UNKNOWNS; j++)
        f->column_scale[j] = sizes[j] < DBL_MIN ? 1.0 : inverse_power_of_two(sizes[j]);
    for (int i = 0; i < N_UNKNOWNS; i++)
        for (int j = 0; j < N_UNKNOWNS; j++) f->a[i * N_UNKNOWNS + j] *= f->column_scale[j];
    return 1;
}

/* W at one of the points, row by row. */
static void load_lane(const Work *m, int l, double *W)
{
#if SYMMETRIC
    memset(W, 0, sizeof(double) * N_UNKNOWNS * N_UNKNOWNS);
    for (int k = 0; k < N_UNKNOWNS; k++) {
        int row = PIVOT[k];
        W[row * N_UNKNOWNS + row] = ENTRY(m->whole[DIAGONAL[k]], l);
        for (int i = BELOW[k]; i < BELOW[k + 1]; i++) {
            double entry = ENTRY(m->whole[BELOW_SLOT[i]], l);
            W[row * N_UNKNOWNS + BELOW_ROW[i]] = W[BELOW_ROW[i] * N_UNKNOWNS + row] = entry;
        }
    }
#else
    for (int i = 0; i < N_UNKNOWNS * N_UNKNOWNS; i++) W[i] = ENTRY(m->whole[i], l);
#endif
}

/* L U of W at one of the points; returns 0 where a pivot is so small that W may be singular. */
static int factorize_lane(Work *m, int l)
{
    Factors *f = m->factors + l;
    load_lane(m, l, f->a);
    if (!equilibrate(f)) return 0;
    for (int k = 0; k < N_UNKNOWNS; k++) {
        double *pivot_row = f->a + k * N_UNKNOWNS;
        int p = k;
        for (int i = k + 1; i < N_UNKNOWNS; i++)
            if (absolute(f->a[i * N_UNKNOWNS + k]) > absolute(f->a[p * N_UNKNOWNS + k])) p = i;
        if (!(absolute(f->a[p * N_UNKNOWNS + k]) > SMALL_PIVOT)) return 0;
        f->pivot[k] = p;
        for (int j = 0; j < N_UNKNOWNS; j++) {
            double entry = pivot_row[j];
            pivot_row[j] = f->a[p * N_UNKNOWNS + j];
            f->a[p * N_UNKNOWNS + j] = entry;
        }
        for (int i = k + 1; i < N_UNKNOWNS; i++) {
            double *row = f->a + i * N_UNKNOWNS, factor = row[k] / pivot_row[k];
            row[k] = factor;
            if (factor == 0.0) continue;
            for (int j = k + 1; j < N_UNKNOWNS; j++) row[j] -= factor * pivot_row[j];
        }
    }
    return 1;
}

/* b := W^-1 b for COLUMNS columns, row by row. */
#define SOLVE_LANE(name, COLUMNS) \
    static void name(const Factors *f, double *b) \
    { \
        for (int i = 0; i < N_UNKNOWNS; i++) \
            for (int c = 0; c < COLUMNS; c++) b[i * COLUMNS + c] *= f->row_scale[i]; \
        for (int k = 0; k < N_UNKNOWNS; k++) { \
            double *to = b + k * COLUMNS, *from = b + f->pivot[k] * COLUMNS; \
            for (int c = 0; c < COLUMNS; c++) { \
                double entry = to[c]; \
                to[c] = from[c]; \
                from[c] = entry; \
            } \
        } \
        for (int k = 0; k < N_UNKNOWNS; k++) \
            for (int i = k + 1; i < N_UNKNOWNS; i++) { \
                double factor = f->a[i * N_UNKNOWNS + k]; \
                if (factor == 0.0) continue; \
                for (int c = 0; c < COLUMNS; c++) b[i * COLUMNS + c] -= factor * b[k * COLUMNS + c]; \
            } \
        for (int k = N_UNKNOWNS - 1; k >= 0; k--) { \
            for (int j = k + 1; j < N_UNKNOWNS; j++) { \
                double factor = f->a[k * N_UNKNOWNS + j]; \
                if (factor == 0.0) continue; \
                for (int c = 0; c < COLUMNS; c++) b[k * COLUMNS + c] -= factor * b[j * COLUMNS + c]; \
            } \
            for (int c = 0; c < COLUMNS; c++) b[k * COLUMNS + c] /= f->a[k * N_UNKNOWNS + k]; \
        } \
        for (int i = 0; i < N_UNKNOWNS; i++) \
            for (int c = 0; c < COLUMNS; c++) b[i * COLUMNS + c] *= f->column_scale[i]; \
    }
SOLVE_LANE(solve_lane, 1)
SOLVE_LANE(solve_lane_chunk, CHUNK)

/* W^-1 of the columns of right, in b, at the points that are solved lane by lane. */
static void solve_lanes(const Work *m, const V *right, V *b)
{
    double lane[NW * CHUNK];
    for (int l = 0; l < WIDTH; l++) {
        if (!m->by_lane[l]) continue;
        for (int i = 0; i < N_UNKNOWNS * CHUNK; i++) lane[i] = ENTRY(right[i], l);
        solve_lane_chunk(m->factors + l, lane);
        for (int i = 0; i < N_UNKNOWNS * CHUNK; i++) ENTRY(b[i], l) = lane[i];
    }
}

/* w at one of the points; returns 0 where W may be singular. */
static int solve_point(Work *m, int l)
{
    double w[NW];
    m->by_lane[l] = (unsigned char)factorize_lane(m, l);
    if (!m->by_lane[l]) return 0;
    for (int i = 0; i < N_UNKNOWNS; i++) w[i] = ENTRY(m->r[i], l);
    solve_lane(m->factors + l, w);
    for (int i = 0; i < N_UNKNOWNS; i++) ENTRY(m->w[i], l) = w[i];
    return 1;
}

#if NEWTON
/* w by Newton's iteration from the guess at each point, as long as its steps shrink; as codegen/implicit.py. */
static void iterate(Work *m, unsigned char *good, int used)
{
    double previous[WIDTH], step_of[NW];
    unsigned char ended[WIDTH];
    for (int i = 0; i < N_UNKNOWNS; i++) m->w[i] = ALL(W_GUESS[i]);
    for (int l = 0; l < used; l++) {
        previous[l] = DBL_MAX;
        ended[l] = good[l] = 0;
    }
    for (int k = 0; k < ITERATIONS; k++) {
        int remaining = 0;
        memset(m->whole, 0, sizeof m->whole);
        equations_system(m);
        for (int l = 0; l < used; l++) {
            double step = 0.0;
            if (ended[l]) continue;
            if (!factorize_lane(m, l)) {
                ended[l] = 1;
                continue;
            }
            for (int i = 0; i < N_UNKNOWNS; i++) step_of[i] = ENTRY(m->r[i], l);
            solve_lane(m->factors + l, step_of);
            for (int i = 0; i < N_UNKNOWNS; i++) {
                double w = ENTRY(m->w[i], l) += step_of[i];
                double part = absolute(step_of[i]) / (absolute(w) > W_SIZES[i] ? absolute(w) : W_SIZES[i]);
                if (!(part <= step)) step = part;
            }
            good[l] = step <= CONVERGED || (step <= STALLED && step > CONTRACTION * previous[l]);
            ended[l] = good[l] || !(step <= CONTRACTION * previous[l]);
            previous[l] = step;
            remaining |= !ended[l];
        }
        if (!remaining) break;
    }
    memset(m->whole, 0, sizeof m->whole);
    equations_system(m);
    memset(m->by_lane, 0, sizeof m->by_lane);
    for (int l = 0; l < used; l++) m->by_lane[l] = good[l] = good[l] && factorize_lane(m, l);
}
#endif
#endif

/* w and the factors of W at all points; good says where. Returns whether the factors are so rough that slopes are refined. */
static int solve(Work *m, unsigned char *good, int used)
{
    int rough = 0;
    (void)used;
#if NEWTON
    iterate(m, good, used);
#else
    memset(m->whole, 0, sizeof m->whole);
    equations_system(m);
#if SYMMETRIC
    factorize(m);
    rough = eliminate_all(m, good);
#else
    memset(good, 0, WIDTH);
#endif
#if DENSE
    memset(m->by_lane, 0, sizeof m->by_lane);
    for (int l = 0; l < used; l++)
        if (!good[l]) good[l] = (unsigned char)solve_point(m, l);
#endif
#endif
    return rough;
}

/* Columns first .. first + CHUNK of the slopes. */
static void slopes(Work *m, int first, double *restrict J, int used, int rough)
{
    int columns = N_COLUMNS - first < CHUNK ? N_COLUMNS - first : CHUNK, chunk = first / CHUNK;
    memset(m->b, 0, sizeof m->b);
    for (int i = E_CHUNK[chunk]; i < E_CHUNK[chunk + 1]; i++) m->b[E_ROW[i] * CHUNK + E_COLUMN[i] - first] = m->e[i];
    int in_lanes = 0;
#if DENSE
    for (int l = 0; l < WIDTH; l++) in_lanes |= m->by_lane[l];
#endif
    if (rough) memcpy(m->right, m->b, sizeof m->b);
    if (in_lanes) memcpy(m->right_of_lanes, m->b, sizeof m->b);
#if SYMMETRIC
    solve_chunk(m, m->b);
    if (rough) refine(m);
#endif
#if DENSE
    if (in_lanes) solve_lanes(m, m->right_of_lanes, m->b);
#endif
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

/* The arguments of WIDTH points from p on, their unknowns and quantities; returns whether the factors are rough. */
static int evaluate(Work *m, const double *s, double *z, unsigned char *fine, int used)
{
    for (int i = 0; i < N_S; i++)
        for (int l = 0; l < WIDTH; l++) ENTRY(m->s[i], l) = s[(l < used ? l : 0) * N_S + i];
    int rough = solve(m, fine, used);
    equations_values(m);
    for (int l = 0; l < used; l++)
        for (int i = 0; i < N_QUANTITIES; i++) z[l * N_QUANTITIES + i] = ENTRY(m->z[i], l);
    return rough;
}

/* The slopes of these points in J (used, N_QUANTITIES, N_COLUMNS). */
static void differentiate(Work *m, double *J, int used, int rough)
{
    equations_slopes(m);
    for (int first = 0; first < N_COLUMNS; first += CHUNK) slopes(m, first, J, used, rough);
}

#ifndef KERNEL /* one kernel is all that a GPU runs */
OUT size_t work_size(void) { return sizeof(Work); }

OUT int width(void) { return WIDTH; }

/* s (count, N_S), z (count, N_QUANTITIES), J (count, N_QUANTITIES, N_COLUMNS): rows that are not constant are filled;
   without J the quantities alone, by the same operations. */
OUT void run(const double *s, double *z, double *J, unsigned char *good, long count, void *work)
{
    Work *m = (Work *)work;
    for (long p = 0; p < count; p += WIDTH) {
        int used = count - p < WIDTH ? (int)(count - p) : WIDTH;
        unsigned char fine[WIDTH];
        int rough = evaluate(m, s + p * N_S, z + p * N_QUANTITIES, fine, used);
        memcpy(good + p, fine, (size_t)used);
        if (J) differentiate(m, J + (size_t)p * N_QUANTITIES * N_COLUMNS, used, rough);
    }
}
#endif

/* Which states are kept, and which rows of the invariants determine the others. The quantities are the rates of n states,
   outputs, and invariants. */
typedef struct {
    int n, outputs, invariants, kept_count;
    const int *kept, *others, *rows;
} Reduction;

/* dz/dy (others, kept) from the gradient H of the invariants, by elimination with row interchanges; NaN where these states
   determine nothing. Returns its largest entry. */
static double eliminate(const Reduction *q, const double *H, double *square, double *along)
{
    int others = q->n - q->kept_count, kept = q->kept_count;
    double largest = 0.0;
    for (int i = 0; i < others; i++) {
        const double *row = H + q->rows[i] * N_COLUMNS;
        for (int j = 0; j < others; j++) square[i * others + j] = row[q->others[j]];
        for (int j = 0; j < kept; j++) along[i * kept + j] = -row[q->kept[j]];
    }
    for (int k = 0; k < others; k++) {
        int p = k;
        for (int i = k + 1; i < others; i++)
            if (absolute(square[i * others + k]) > absolute(square[p * others + k])) p = i;
        if (!(absolute(square[p * others + k]) > 0.0)) {
            for (int i = 0; i < others * kept; i++) along[i] = NAN;
            return NAN;
        }
        for (int j = 0; j < others && p != k; j++) {
            double entry = square[k * others + j];
            square[k * others + j] = square[p * others + j];
            square[p * others + j] = entry;
        }
        for (int j = 0; j < kept && p != k; j++) {
            double entry = along[k * kept + j];
            along[k * kept + j] = along[p * kept + j];
            along[p * kept + j] = entry;
        }
        for (int i = k + 1; i < others; i++) {
            double factor = square[i * others + k] / square[k * others + k];
            if (factor == 0.0) continue;
            for (int j = k + 1; j < others; j++) square[i * others + j] -= factor * square[k * others + j];
            for (int j = 0; j < kept; j++) along[i * kept + j] -= factor * along[k * kept + j];
        }
    }
    for (int k = others - 1; k >= 0; k--)
        for (int j = 0; j < kept; j++) {
            for (int i = k + 1; i < others; i++) along[k * kept + j] -= square[k * others + i] * along[i * kept + j];
            along[k * kept + j] /= square[k * others + k];
            double size = absolute(along[k * kept + j]);
            if (!(size <= largest)) largest = size;
        }
    return largest;
}

/* Rows of slopes along the kept states and the inputs from those along all states and the inputs. */
static void reduce(const Reduction *q, int rows, const double *J, const double *along, double *reduced)
{
    int others = q->n - q->kept_count, kept = q->kept_count, inputs = N_COLUMNS - q->n, in_order = others == 0;
    for (int j = 0; j < kept && in_order; j++) in_order = q->kept[j] == j;
    if (in_order) {
        memcpy(reduced, J, sizeof(double) * (size_t)(rows * N_COLUMNS));
        return;
    }
    for (int r = 0; r < rows; r++) {
        const double *from = J + r * N_COLUMNS;
        double *to = reduced + r * (kept + inputs);
        for (int j = 0; j < kept; j++) to[j] = from[q->kept[j]];
        for (int i = 0; i < others; i++) {
            double slope = from[q->others[i]];
            if (slope == 0.0) continue;
            for (int j = 0; j < kept; j++) to[j] += slope * along[i * kept + j];
        }
        memcpy(to + kept, from + q->n, sizeof(double) * (size_t)inputs);
    }
}

/* The model along kept states at many points. numbers: states, outputs, invariants, kept states; then the kept states, the
   others, and the invariants that determine these, by number. J (WIDTH, N_QUANTITIES, N_COLUMNS) holds the constant rows;
   room has others * (others + kept) entries. The arrays that are filled have count rows: z, the gradient of the
   invariants, T (not without others), slopes of rates and outputs. Returns how many points are not good, or have a
   dz/dy that is larger than limit; flags marks them. */
OUT long run_along(const double *s, long count, const int *numbers, double limit, double *J, double *room, double *z,
                   double *gradient, double *T, double *rates, double *outputs, unsigned char *flags, void *work)
{
    Work *m = (Work *)work;
    int n = numbers[0], ny = numbers[1], invariants = numbers[2], kept = numbers[3], others = n - kept;
    const Reduction q = {n, ny, invariants, kept, numbers + 4, numbers + 4 + kept, numbers + 4 + n};
    size_t width = (size_t)(kept + N_COLUMNS - n), k, p_row;
    double *along = room + others * others;
    long doubtful = 0;
    for (long p = 0; p < count; p += WIDTH) {
        int used = count - p < WIDTH ? (int)(count - p) : WIDTH;
        unsigned char fine[WIDTH];
        int rough = evaluate(m, s + p * N_S, z + p * N_QUANTITIES, fine, used);
        differentiate(m, J, used, rough);
        for (int l = 0; l < used; l++) {
            const double *rows = J + (size_t)l * N_QUANTITIES * N_COLUMNS, *H = rows + (n + ny) * N_COLUMNS;
            double largest = others ? eliminate(&q, H, room, along) : 0.0;
            k = (size_t)(p + l);
            for (int i = 0; i < invariants; i++) {
                p_row = k * (size_t)invariants + (size_t)i;
                memcpy(gradient + p_row * (size_t)n, H + i * N_COLUMNS, sizeof(double) * (size_t)n);
            }
            if (others) {
                double *tangent = T + k * (size_t)(n * kept);
                memset(tangent, 0, sizeof(double) * (size_t)(n * kept));
                for (int j = 0; j < kept; j++) tangent[q.kept[j] * kept + j] = 1.0;
                for (int i = 0; i < others; i++)
                    memcpy(tangent + q.others[i] * kept, along + i * kept, sizeof(double) * (size_t)kept);
            }
            reduce(&q, n, rows, along, rates + k * (size_t)n * width);
            reduce(&q, ny, rows + n * N_COLUMNS, along, outputs + k * (size_t)ny * width);
            flags[k] = (unsigned char)(!fine[l] || !(largest <= limit));
            doubtful += flags[k];
        }
    }
    return doubtful;
}

#ifndef KERNEL
#if INVARIANTS_ALONE
/* d := square^-1 d by elimination with row interchanges; returns 0 where a pivot vanishes. */
static int solve_small(int n, double *square, double *d)
{
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (absolute(square[i * n + k]) > absolute(square[p * n + k])) p = i;
        if (!(absolute(square[p * n + k]) > 0.0)) return 0;
        for (int j = k; j < n && p != k; j++) {
            double entry = square[k * n + j];
            square[k * n + j] = square[p * n + j];
            square[p * n + j] = entry;
        }
        double right = d[p];
        d[p] = d[k];
        d[k] = right;
        for (int i = k + 1; i < n; i++) {
            double factor = square[i * n + k] / square[k * n + k];
            if (factor == 0.0) continue;
            for (int j = k + 1; j < n; j++) square[i * n + j] -= factor * square[k * n + j];
            d[i] -= factor * d[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) d[k] -= square[k * n + j] * d[j];
        d[k] /= square[k * n + k];
    }
    return 1;
}

/* One step of Newton's iteration for the other states at one of the points; returns its size, NaN where there is none. */
static double correct(Work *m, int l, const Reduction *q, const double *sizes, double *room)
{
    int others = q->n - q->kept_count;
    double H[N_INVARIANTS * N_COLUMNS] = {0.0}, *square = room, *d = room + others * others, largest = 0.0;
    for (int i = 0; i < NHX; i++) H[H_ROW[i] * q->n + H_COLUMN[i]] = ENTRY(m->h_x[i], l);
    for (int i = 0; i < others; i++) {
        const double *row = H + q->rows[i] * q->n;
        for (int j = 0; j < others; j++) square[i * others + j] = row[q->others[j]];
        d[i] = ENTRY(m->h[q->rows[i]], l);
    }
    if (!solve_small(others, square, d)) return NAN;
    for (int i = 0; i < others; i++) {
        double size = absolute(d[i]) / sizes[q->others[i]];
        ENTRY(m->s[1 + q->others[i]], l) -= d[i];
        if (!(size <= largest)) largest = size;
    }
    return largest;
}
#endif

/* Newton's iteration for the states that are not kept, in place in s, until a step is at most limit in sizes (count, n).
   Returns how many points did not get there; failed marks them. room has others * (others + 1) entries. */
OUT long run_reach(double *s, long count, const int *numbers, const double *sizes, double limit, int iterations,
                   double *room, unsigned char *failed, void *work)
{
    long failures = 0;
#if INVARIANTS_ALONE
    Work *m = (Work *)work;
    int n = numbers[0], kept = numbers[3];
    const Reduction q = {n, numbers[1], numbers[2], kept, numbers + 4, numbers + 4 + kept, numbers + 4 + n};
    for (long p = 0; p < count; p += WIDTH) {
        int used = count - p < WIDTH ? (int)(count - p) : WIDTH, remaining = used;
        for (int i = 0; i < N_S; i++)
            for (int l = 0; l < WIDTH; l++) ENTRY(m->s[i], l) = s[(p + (l < used ? l : 0)) * N_S + i];
        memset(failed + p, 1, (size_t)used);
        for (int k = 0; k < iterations && remaining; k++) {
            invariants_values(m);
            for (int l = 0; l < used; l++) {
                if (!failed[p + l]) continue;
                if (correct(m, l, &q, sizes + (p + l) * n, room) <= limit) {
                    failed[p + l] = 0;
                    remaining--;
                }
            }
        }
        for (int l = 0; l < used; l++)
            for (int i = 0; i < n; i++) s[(p + l) * N_S + 1 + i] = ENTRY(m->s[1 + i], l);
        failures += remaining;
    }
#else
    (void)s, (void)numbers, (void)sizes, (void)limit, (void)iterations, (void)room, (void)failed, (void)work;
    failures = count;
#endif
    return failures;
}
#endif
