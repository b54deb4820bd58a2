/* Co-simulation of equations: the pair of formulas of order 5 and 4 of Dormand and Prince (J. Comput. Appl. Math. 6,
 * 1980) with step size control. Nothing pulls the states back onto the manifold of constraints: the default tolerance
 * is so small that they stay near it for as long as a controller is tried out. */

#define DEFAULT_TOLERANCE 1e-8

static const double STAGE_TIME[N_STAGES] = {0.0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0, 1.0};
static const double STAGE[N_STAGES][N_STAGES - 1] = {
    {0.0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0.0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
};
/* Order 5 minus order 4. */
static const double STAGE_ERROR[N_STAGES] = {
    71.0 / 57600, 0.0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40,
};

/* Where a step of co-simulation began. */
typedef struct {
    double time;
    const double *u;
} Beginning;

/* stages[s] = f at the time and the states of stage s of a step of size h from `time` and x_before. */
static Status evaluate_stage(Instance *instance, int s, double time, double h, Beginning from, const char *function)
{
    Kind *kind = &instance->kind;
    Model *m = &kind->model;
    m->time = time + STAGE_TIME[s] * h;
    for (int i = 0; i < NU; i++) m->u[i] = from.u[i] + kind->slope[i] * (m->time - from.time);
    for (int i = 0; i < NX; i++) {
        double sum = 0.0;
        for (int k = 0; k < s; k++) sum += STAGE[s][k] * kind->stages[k][i];
        m->x[i] = kind->x_before[i] + h * sum;
    }
    kind_forget(instance);
    Status status = kind_evaluate(instance, 0, function);
    if (status == STATUS_OK) memcpy(kind->stages[s], m->z, sizeof(double) * NX);
    return status;
}

/* The largest error of a state as a part of what is tolerated; infinite where it is not a number. */
static double error_of_step(const Instance *instance, double h)
{
    const Kind *kind = &instance->kind;
    double tolerance = instance->tolerance > 0.0 ? instance->tolerance : DEFAULT_TOLERANCE, largest = 0.0;
    for (int i = 0; i < NX; i++) {
        double error = 0.0;
        for (int k = 0; k < N_STAGES; k++) error += STAGE_ERROR[k] * kind->stages[k][i];
        double size = fmax(fmax(fabs(kind->x_before[i]), fabs(kind->model.x[i])), X_NOMINAL[i]);
        error = fabs(h * error) / (tolerance * size);
        if (!(error <= largest)) largest = error == error ? error : HUGE_VAL;
    }
    return largest;
}

/* One step of size h, from `time`; its error tells whether it counts. */
static Status try_step(Instance *instance, double time, double h, Beginning from, double *error, const char *function)
{
    for (int s = 0; s < N_STAGES; s++) {
        Status status = evaluate_stage(instance, s, time, h, from, function);
        if (status != STATUS_OK) return status;
    }
    *error = error_of_step(instance, h);
    return STATUS_OK;
}

/* From the present time and states over `length`, in steps of the integrator's own. */
static Status integrate(Instance *instance, double length, Beginning from, const char *function)
{
    Kind *kind = &instance->kind;
    double done = 0.0;
    while (done < length) {
        double left = length - done, error = 0.0;
        int is_last = !(kind->step > 0.0 && kind->step < left);
        double h = is_last ? left : kind->step;
        if (h < 1e-13 * (length + fabs(from.time))) {
            say(instance, STATUS_DISCARD, "%s: the steps of the integrator have become too small at time %.17g.",
                function, from.time + done);
            return STATUS_DISCARD;
        }
        memcpy(kind->x_before, kind->model.x, sizeof kind->x_before);
        Status status = try_step(instance, from.time + done, h, from, &error, function);
        if (status != STATUS_OK) return status;
        double factor = error > 0.0 ? 0.9 * pow(error, -0.2) : 5.0;
        if (error <= 1.0) done = is_last ? length : done + h;
        else memcpy(kind->model.x, kind->x_before, sizeof kind->x_before);
        if (error > 1.0 || !is_last || factor < 1.0 || kind->step <= 0.0)
            kind->step = h * fmin(fmax(factor, 0.2), 5.0);
    }
    return STATUS_OK;
}

/* Afterwards the states are those of the end, and time and inputs as they were: a failed step changes nothing. */
static Status kind_step(Instance *instance, double h, const char *function)
{
    Kind *kind = &instance->kind;
    Model *m = &kind->model;
    double x_start[AT_LEAST_ONE(NX)];
    memcpy(x_start, m->x, sizeof x_start);
    memcpy(kind->u_before, m->u, sizeof kind->u_before);
    const Beginning from = {m->time, kind->u_before};
    Status status = NX > 0 ? integrate(instance, h, from, function) : STATUS_OK;
    if (status != STATUS_OK) memcpy(m->x, x_start, sizeof x_start);
    m->time = from.time;
    memcpy(m->u, kind->u_before, sizeof kind->u_before);
    kind_forget(instance);
    return status;
}
