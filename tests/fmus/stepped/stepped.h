/* A plant that can be stepped, as an FMU for co-simulation (FMI 2.0, or 3.0 with -DFMI3) and, in FMI 2.0, model exchange.

   A behaviour file defines NX, NU, NY (and NZ, PERIOD when it is sampled), includes this header, and then defines
     rates(x, z, u, dx), outputs(x, z, u, y), begin(m), and with PERIOD tick(m), which is called at its multiples.
   Value references: x, dx, u, y, one after the other. What the FMU does wrong is switched on by -D:
     STALE            outputs are calculated at the end of each step only
     DEAF_STATES      states that are set are ignored;  REFUSES_STATES: refused
     STRICT           states can be set until initialization ends, as the standard wants it
     STALE_RATES      derivatives are calculated at the end of each step only
     KEEPS_INPUTS     restoring shows the old inputs, the next step uses the newer ones, and only that one
     RESTARTS         restoring restarts the solver, which then takes a coarser step first
     RESTORES_NOTHING restoring says OK and does nothing
     NOISE=size       outputs carry noise that no restoring repeats
     REFUSES_STEPS=h  steps smaller than h are discarded
     ROLLS_BACK       a step that may be taken back is taken back before the next one
     ONLY_ONCE        a second instance in the same library ends the process
     REFUSES_A_SECOND a second instance in the same library is refused
     EVER_ONCE        a second instance in the same process ends it, whichever library it is in
     LOOSE            without a tolerance the solver takes one explicit Euler step per communication step
     INEXACT=k        the solver makes an error of k roots of the tolerance per second, whatever the step
     EVENTS           after_substep(m) is called after each step of the solver
     CLOCK=i          output i is a number that no restoring repeats
     THREAD           a thread of its own waits from the first instance on
     SLOW=n           a step takes n nanoseconds more
     RETURNS_EARLY    (FMI 3.0) ticks are the FMU's own: it returns early from the step when one is due, and ticks in the
                      event mode that it asks for; it must be allowed to
     CLOCKED          (FMI 3.0) ticks are those of a clock that the importer activates in event mode, nothing else */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef SLOW
#include <time.h>
#endif
#ifdef THREAD
#include <pthread.h>
#include <unistd.h>
#endif

#ifdef FMI3
#include "fmi3FunctionTypes.h"
#else
#include "fmi2Functions.h"
#endif

#ifndef NZ
#define NZ 0
#endif
#ifndef SUBSTEP
#define SUBSTEP 1e-3
#endif
#ifndef NOISE
#define NOISE 0
#endif

typedef struct {
    double x[NX + 1], dx[NX + 1], z[NZ + 1], u[NU + 1], used[NU + 1], y[NY + 1], time, next_tick;
    int fresh;   /* steps since the solver (re)started */
    int running; /* initialized */
    int loose;   /* no tolerance was asked for */
    double tolerance;
    int events, ticking, early; /* instantiated for event mode; the clock is active; early return is allowed */
} Model;

static void rates(const double *x, const double *z, const double *u, double *dx);
static void outputs(const double *x, const double *z, const double *u, double *y);
static void begin(Model *m);
#ifdef EVENTS
static void after_substep(Model *m); /* state events, once in a substep */
#endif
#ifdef PERIOD
static void tick(Model *m);
#endif

static double noise(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return NOISE * (state / 4294967296.0 - 0.5) * 3.4641016;
}

static unsigned looks; /* of all instances, which no state restores */

static void look(Model *m) {
    rates(m->x, m->z, m->u, m->dx);
    outputs(m->x, m->z, m->u, m->y);
#ifdef CLOCK
    looks = looks * 1664525u + 1013904223u;
    m->y[CLOCK] = looks / 4294967296.0; /* as good as a clock, or a random number */
#endif
    for (int i = 0; i < NY; i++) m->y[i] += noise();
}

static void runge_kutta(Model *m, double h) {
    double k[4][NX + 1], x[NX + 1];
    static const double at[] = {0, 0.5, 0.5, 1};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < NX; i++) x[i] = m->x[i] + (s ? at[s] * h * k[s - 1][i] : 0);
        rates(x, m->z, m->used, k[s]);
    }
    for (int i = 0; i < NX; i++) m->x[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
}

static void integrate(Model *m, double h) {
    int n = (int)ceil(h / SUBSTEP - 1e-9);
#ifdef LOOSE
    if (m->loose) {
        double dx[NX + 1];
        rates(m->x, m->z, m->used, dx);
        for (int i = 0; i < NX; i++) m->x[i] += h * dx[i];
        n = 0;
    }
#endif
#ifdef RESTARTS
    if (m->fresh == 0 && n > 0) { /* one explicit Euler substep */
        double dx[NX + 1];
        rates(m->x, m->z, m->used, dx);
        for (int i = 0; i < NX; i++) m->x[i] += h / n * dx[i];
        h -= h / n, n--;
    }
#endif
    for (int i = 0; i < n; i++) {
        runge_kutta(m, h / n);
#ifdef EVENTS
        after_substep(m);
#endif
    }
#ifdef INEXACT
    for (int i = 0; i < NX; i++) m->x[i] *= 1 - INEXACT * h * sqrt(m->tolerance);
#endif
    m->time += h;
    m->fresh++;
}

static int step(Model *m, double h) {
#ifdef REFUSES_STEPS
    if (h < REFUSES_STEPS * (1 - 1e-9)) return 0;
#endif
#ifndef KEEPS_INPUTS
    memcpy(m->used, m->u, sizeof m->u);
#endif
    double end = m->time + h;
#if defined(PERIOD) && !defined(CLOCKED) && !defined(RETURNS_EARLY)
    while (m->next_tick < end - 1e-9) {
        if (m->next_tick > m->time + 1e-9) integrate(m, m->next_tick - m->time);
        tick(m);
        m->next_tick += PERIOD;
    }
#endif
    integrate(m, end - m->time);
    memcpy(m->used, m->u, sizeof m->u);
#ifdef SLOW
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLOW;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_nsec < until.tv_nsec && now.tv_sec == until.tv_sec);
#endif
    m->time = end;
    look(m);
    return 1;
}

#ifdef ROLLS_BACK
static Model before;
#endif
static int may_be_taken_back(Model *m, double h, int forgets) {
#ifdef ROLLS_BACK
    if (!forgets) {
        double time = m->time;
        if (before.running) {
            memcpy(m->x, before.x, sizeof m->x);
            memcpy(m->z, before.z, sizeof m->z);
        }
        before = *m;
    }
#endif
    return step(m, h);
}

#ifdef THREAD
static void *wait_for_ever(void *nothing) {
    for (;;) pause();
}
#endif

static Model *made(void) {
#ifdef THREAD
    static pthread_t thread;
    if (!thread) pthread_create(&thread, NULL, wait_for_ever, NULL);
#endif
#ifdef ONLY_ONCE
    static int instances;
    if (instances++) abort();
#endif
#ifdef EVER_ONCE
    if (getenv("ZOO_HAS_BEGUN")) abort();
    setenv("ZOO_HAS_BEGUN", "1", 1);
#endif
#ifdef REFUSES_A_SECOND
    static int made_before;
    if (made_before++) return NULL;
#endif
    Model *m = calloc(1, sizeof(Model));
    begin(m);
    memcpy(m->used, m->u, sizeof m->u);
    look(m);
    return m;
}

static double *at(Model *m, unsigned vr) {
    if (vr < NX) return m->x + vr;
    if (vr < 2 * NX) return m->dx + (vr - NX);
    if (vr < 2 * NX + NU) return m->u + (vr - 2 * NX);
    if (vr < 2 * NX + NU + NY) return m->y + (vr - 2 * NX - NU);
    return NULL;
}

static int get(Model *m, const unsigned *vr, size_t n, double *value) {
    Model now = *m;
    look(&now);
    for (size_t i = 0; i < n; i++) {
        Model *from = &now;
        if (!at(m, vr[i])) return 0;
#ifdef STALE
        if (vr[i] >= 2 * NX + NU) from = m;
#endif
#ifdef STALE_RATES
        if (vr[i] >= NX && vr[i] < 2 * NX) from = m;
#endif
        value[i] = *at(from, vr[i]);
    }
    return 1;
}

static int set(Model *m, const unsigned *vr, size_t n, const double *value) {
    for (size_t i = 0; i < n; i++) {
        if (!at(m, vr[i])) return 0;
        if (vr[i] < NX) {
#ifdef DEAF_STATES
            continue;
#endif
#ifdef REFUSES_STATES
            return 0;
#endif
#ifdef STRICT
            if (m->running) return 0;
#endif
        }
        int input = vr[i] >= 2 * NX && vr[i] < 2 * NX + NU;
        /* with KEEPS_INPUTS a value that is shown already is not taken again */
        if (input && *at(m, vr[i]) != value[i]) m->used[vr[i] - 2 * NX] = value[i];
        *at(m, vr[i]) = value[i];
    }
    return 1;
}

static void saved(Model *m, void **state) {
    if (!*state) *state = malloc(sizeof(Model));
    memcpy(*state, m, sizeof(Model));
}

static void restored(Model *m, const void *state) {
#ifndef RESTORES_NOTHING
    double used[NU + 1];
    memcpy(used, m->used, sizeof used);
    memcpy(m, state, sizeof(Model));
    m->fresh = 0;
#ifdef KEEPS_INPUTS
    memcpy(m->used, used, sizeof used);
#endif
#endif
}

#ifdef FMI3
#include "stepped3.h"
#else
#include "stepped2.h"
#endif
