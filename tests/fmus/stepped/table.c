/* Plants with a solver inside, for tests/cosimulation_table.py: which of them, and how it is solved, are parameters.

   Value references: parameters p, states x, derivatives dx, inputs u, outputs y, one after the other.
     p[0] plant    p[1] solver: 0 Runge-Kutta, 1 Euler, 2 Heun, 3 semi-implicit Euler, 4 trapezoidal rule, 5 implicit Euler
     p[2] its step
     p[3] what it does between its steps: 0 divides a communication step evenly, 1 stands still until its own step fits,
          2 runs ahead to its own next step, 3 takes the communication step for its own, 4 refuses other steps than its own,
          5 rounds to whole steps, one at least, 6 takes one step whatever it is told
     p[4..9] parameters of the plant */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fmi2Functions.h"

#define NP 10
#define NX 6
#define NU 2
#define NY 2
#define LATE 64
typedef struct {
    double p[NP], x[NX], dx[NX], u[NU], y[NY], late[LATE], time, origin, next_tick, tolerance;
    int running, loose, count;
} Model;

static double limited(double v, double most) { return v > most ? most : v < -most ? -most : v; }

static void rates(const Model *m, const double *x, double *dx) {
    const double *p = m->p + 4, u = m->u[0];
    double r;
    memset(dx, 0, NX * sizeof *dx);
    switch ((int)m->p[0]) {
    case 0: dx[0] = -p[0] * x[0] + p[1] * u; break;                                           /* lag */
    case 1: dx[0] = x[1], dx[1] = -p[0] * p[0] * x[0] - p[1] * x[1] - p[2] * pow(x[0], 3) + u; break; /* oscillator */
    case 2: dx[0] = x[1], dx[1] = p[0] * (1 - x[0] * x[0]) * x[1] - x[0] + u; break;          /* van der Pol */
    case 3: r = 1 - x[0] * x[0] - x[1] * x[1];                                                /* Hopf's circle */
        dx[0] = r * x[0] - p[0] * x[1], dx[1] = p[0] * x[0] + r * x[1] + u; break;
    case 4: break;                                                                            /* gain */
    case 5: dx[0] = limited(p[0] * u, p[1]) - p[2] * x[0]; break;                             /* limited drive */
    case 6: dx[0] = x[1], dx[1] = -p[0] * p[0] * sin(x[0]) - p[1] * x[1] + u; break;          /* pendulum */
    case 7: dx[0] = x[1], dx[1] = (u - p[0] * (x[0] - x[2]) - p[3] * (x[1] - x[3])) / p[1];   /* torsion bar */
        dx[2] = x[3], dx[3] = (p[0] * (x[0] - x[2]) + p[3] * (x[1] - x[3])) / p[2]; break;
    case 8: for (int i = 0; i < NX; i++) dx[i] = p[0] * ((i ? x[i - 1] : u) - x[i]); break;    /* chain of lags */
    case 9: dx[0] = (u - x[0]) / p[0], dx[1] = limited(x[0], p[1]); break;                    /* limited rate */
    case 11: dx[0] = x[1], dx[1] = (p[0] * sin(x[2]) * x[3] * x[3] + u) / p[1];               /* cart and pole */
        dx[2] = x[3], dx[3] = p[2] * sin(x[2]) - p[3] * x[3] - p[4] * dx[1] * cos(x[2]); break;
    case 12: dx[0] = (u - p[0] * x[0] - p[1] * x[1]) / p[2], dx[1] = (p[1] * x[0] - p[3] * x[1]) / p[4]; /* DC motor */
        dx[2] = x[1]; break;
    case 10: dx[0] = -p[0] * x[0] + p[1] * m->late[(m->count + LATE - (int)p[2]) % LATE]; break; /* late input */
    }
}

static void look(Model *m) {
    rates(m, m->x, m->dx);
    m->y[0] = m->p[0] == 4 ? m->p[4] * m->u[0] + m->p[5] : m->x[0] + m->p[9] * m->u[0];
    m->y[1] = m->x[1];
    if (m->p[0] == 8) m->y[0] = m->x[NX - 1];
    if (m->p[0] == 7) m->y[1] = m->x[2];
    if (m->p[0] == 11) m->y[1] = m->x[2];
    if (m->p[0] == 12) m->y[0] = m->x[1], m->y[1] = m->x[2];
}

static void integrate(Model *m, double h) {
    double k[4][NX], x[NX];
    static const double at[] = {0, 0.5, 0.5, 1};
    m->late[m->count % LATE] = m->u[0];
    rates(m, m->x, k[0]);
    switch ((int)m->p[1]) {
    case 0:
        for (int s = 1; s < 4; s++) {
            for (int i = 0; i < NX; i++) x[i] = m->x[i] + at[s] * h * k[s - 1][i];
            rates(m, x, k[s]);
        }
        for (int i = 0; i < NX; i++) m->x[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
        break;
    case 1: for (int i = 0; i < NX; i++) m->x[i] += h * k[0][i]; break;
    case 2:
        for (int i = 0; i < NX; i++) x[i] = m->x[i] + h * k[0][i];
        rates(m, x, k[1]);
        for (int i = 0; i < NX; i++) m->x[i] += h / 2 * (k[0][i] + k[1][i]);
        break;
    case 3:
        for (int i = 1; i < NX; i += 2) m->x[i] += h * k[0][i]; /* velocities, then positions */
        rates(m, m->x, k[1]);
        for (int i = 0; i < NX; i += 2) m->x[i] += h * k[1][i];
        break;
    case 4: case 5: /* by fixed-point iteration, to rounding */
        memcpy(x, m->x, sizeof x);
        for (int s = 0; s < 300; s++) {
            const double part = m->p[1] == 4 ? 0.5 : 0;
            rates(m, x, k[1]);
            for (int i = 0; i < NX; i++) x[i] = m->x[i] + h * (part * k[0][i] + (1 - part) * k[1][i]);
        }
        memcpy(m->x, x, sizeof x);
    }
    m->count++;
}

static int may_be_taken_back(Model *m, double h, int forgets) {
    const double own = m->p[2], end = m->time + h;
    int mode = (int)m->p[3], n = (int)ceil(h / own - 1e-9);
    if (mode == 4 && fabs(h / own - round(h / own)) > 1e-6) return 0;
    if (mode == 3) n = 1;
    if (mode == 5) n = n < 1 ? 1 : (int)round(h / own), n = n < 1 ? 1 : n;
    if (mode == 6) n = 1;
    if (mode == 1) n = (int)floor((end - m->origin) / own + 1e-6) - m->count;
    if (mode == 2) n = (int)ceil((end - m->origin) / own - 1e-6) - m->count;
    for (int i = 0; i < n; i++) integrate(m, mode == 1 || mode == 2 || mode >= 5 ? own : h / n);
    m->time = end;
    return 1;
}

static Model *made(void) {
    return calloc(1, sizeof(Model));
}
static double *at(Model *m, unsigned vr) {
    if (vr < NP) return m->p + vr;
    if ((vr -= NP) < NX) return m->x + vr;
    if ((vr -= NX) < NX) return m->dx + vr;
    if ((vr -= NX) < NU) return m->u + vr;
    return (vr -= NU) < NY ? m->y + vr : NULL;
}
static int get(Model *m, const unsigned *vr, size_t n, double *value) {
    look(m);
    for (size_t i = 0; i < n; i++) value[i] = *at(m, vr[i]);
    return 1;
}
static int set(Model *m, const unsigned *vr, size_t n, const double *value) {
    for (size_t i = 0; i < n; i++) *at(m, vr[i]) = value[i];
    m->origin = m->running ? m->origin : m->time;
    return 1;
}
static void saved(Model *m, void **state) {
    if (!*state) *state = malloc(sizeof *m);
    memcpy(*state, m, sizeof *m);
}
static void restored(Model *m, const void *state) { memcpy(m, state, sizeof *m); }

#include "stepped2.h"
