/* Steps of co-simulation of a linear model: exact for inputs that are held or go on linearly. */

/* Fill in a transition for the step size h; 0 where it cannot be. */
static int make_transition(Instance *instance, Transition *t, double h)
{
    Kind *k = &instance->kind;
    const size_t nx = instance->v.nx, nu = instance->v.nu, m = nu + 1;
    t->h = 0.0;
    if (!t->E) t->E = malloc(sizeof(double) * nx * (nx + 2 * m));
    double *B = malloc(sizeof(double) * nx * m); /* and f0 as a last column, whose input is 1 */
    if (!t->E || !B) {
        free(B);
        return 0;
    }
    t->F = t->E + nx * nx;
    t->G = t->F + nx * m;
    for (size_t i = 0; i < nx; i++) {
        if (nu > 0) memcpy(B + i * m, k->B + i * nu, sizeof(double) * nu);
        B[i * m + nu] = k->f0[i];
    }
    int is_done = exponential(nx, m, k->A, B, k->balance, k->norm, h, t->E, t->F, t->G) == 1;
    free(B);
    if (is_done) t->h = h;
    return is_done;
}

/* The transition of the step size that is nearest to h, made where none is near enough; NULL with a message.
 *
 * Importers subtract times, so that step sizes differ by rounding. What a difference of d does is d x' up to
 * (d |A|)^2 / 2, which is nothing for the differences that are tolerated here. */
static const Transition *transition_for(Instance *instance, double h, const char *function)
{
    Kind *k = &instance->kind;
    Transition *nearest = NULL;
    for (int i = 0; i < N_TRANSITIONS; i++) {
        Transition *t = &k->transitions[i];
        if (t->h == h) return t;
        if (t->h > 0.0 && fabs(t->h - h) <= 1e-7 * h && fabs(t->h - h) * k->norm <= 1e-8) nearest = t;
    }
    if (nearest) return nearest;
    Transition *t = &k->transitions[k->oldest];
    k->oldest = (k->oldest + 1) % N_TRANSITIONS;
    if (make_transition(instance, t, h)) return t;
    say(instance, STATUS_DISCARD,
        "%s: the exponential of the matrix A for a step of %.17g s is out of reach of numbers or of the memory. Take "
        "smaller steps.", function, h);
    return NULL;
}

/* next = x(h) - x0 = E dx + F (du; 1) + G u' */
static void pass_on(Instance *instance, const Transition *t, double *next)
{
    Kind *k = &instance->kind;
    const Values *v = &instance->v;
    const size_t m = v->nu + 1;
    subtract(v->nx, v->x, k->x0, k->dx);
    subtract(v->nu, v->u, k->u0, k->du);
    k->du[v->nu] = 1.0;
    memset(next, 0, sizeof(double) * v->nx);
    add_product(v->nx, v->nx, t->E, k->dx, next);
    add_product(v->nx, m, t->F, k->du, next);
    int is_held = 1;
    for (size_t i = 0; i < v->nu; i++) is_held = is_held && v->slope[i] == 0.0;
    if (is_held) return;
    memcpy(k->du, v->slope, sizeof(double) * v->nu);
    k->du[v->nu] = 0.0;
    add_product(v->nx, m, t->G, k->du, next);
}

/* next += d x', for the rounding of a step size. */
static void correct(Instance *instance, double h, double d, double *next)
{
    Kind *k = &instance->kind;
    const Values *v = &instance->v;
    double *rates = next + v->nx;
    for (size_t i = 0; i < v->nu; i++) k->du[i] = v->u[i] + h * v->slope[i] - k->u0[i];
    memcpy(rates, k->f0, sizeof(double) * v->nx);
    add_product(v->nx, v->nx, k->A, next, rates);
    add_product(v->nx, v->nu, k->B, k->du, rates);
    for (size_t i = 0; i < v->nx; i++) next[i] += d * rates[i];
}

/* Take over the new states, unless they have become infinite. */
static Status settle(Instance *instance, const double *next, const char *function)
{
    const Kind *k = &instance->kind;
    const Values *v = &instance->v;
    double sum = 0.0;
    for (size_t i = 0; i < v->nx; i++) sum += fabs(next[i]);
    if (!(sum <= 1.7e308)) {
        say(instance, STATUS_DISCARD, "%s: the states become infinite after time %.17g: the model is unstable.",
            function, *v->time);
        return STATUS_DISCARD;
    }
    for (size_t i = 0; i < v->nx; i++) v->x[i] = k->x0[i] + next[i];
    return STATUS_OK;
}

/* z[k] = g0 + C (x[k] - x0) + D (held - u0), x[k+1] = x0 + f0 + A (x[k] - x0) + B (held - u0) */
static Status take_sample(Instance *instance, const char *function)
{
    Kind *k = &instance->kind;
    const Values *v = &instance->v;
    subtract(v->nx, v->x, k->x0, k->dx);
    subtract(v->nu, v->extra, k->u0, k->du);
    affine(instance, v->ny, k->g0, k->C, k->D, v->extra + v->nu);
    affine(instance, v->nx, k->f0, k->A, k->B, k->next);
    return settle(instance, k->next, function);
}

/* A step that fails changes no state. The outputs that it would have kept count only where time has moved on. */
static Status all_samples(Instance *instance, double h, const char *function)
{
    const Values *v = &instance->v;
    double *before = instance->kind.next + v->nx;
    memcpy(before, v->x, sizeof(double) * v->nx);
    Status status = sampled_step(instance, h, function);
    if (status != STATUS_OK) memcpy(v->x, before, sizeof(double) * v->nx);
    return status;
}

static Status kind_step(Instance *instance, double h, const char *function)
{
    if (KIND_IS_SAMPLED(instance)) return all_samples(instance, h, function);
    if (instance->v.nx == 0) return STATUS_OK;
    const Transition *t = transition_for(instance, h, function);
    if (!t) return STATUS_DISCARD;
    double *next = instance->kind.next;
    pass_on(instance, t, next);
    if (t->h != h) correct(instance, t->h, h - t->h, next);
    return settle(instance, next, function);
}
