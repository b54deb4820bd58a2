/* Co-simulation: steps in time, inputs that go on linearly meanwhile, and slopes of outputs. */

#define MODEL_EXCHANGE "this instance is for model exchange"

/* Whether the times agree, but for the rounding of a sum of many steps. */
static int same_time(double a, double b, double step)
{
    return fabs(a - b) <= 1e-6 * fabs(step) + 1e-9 * (fabs(a) + fabs(b));
}

static Status do_step(Instance *instance, double time, double step, const char *function)
{
    if (instance && !instance->co_simulation) return not_applicable(instance, function, MODEL_EXCHANGE);
    if (!allowed(instance, STEP, function)) return STATUS_ERROR;
    Values *v = &instance->v;
    if (!(step >= 0.0 && step <= 1e300) || !same_time(time, *v->time, step)) {
        say(instance, STATUS_ERROR,
            "%s: a step of %.17g from time %.17g cannot be done: steps go forward, from where the last one ended, which "
            "is at time %.17g.", function, step, time, *v->time);
        return STATUS_ERROR;
    }
    Status status = step > 0.0 ? kind_step(instance, step, function) : STATUS_OK;
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < v->nu; i++) v->u[i] += step * v->slope[i];
    *v->time = time + step;
    if (step > 0.0) instance->was_set = 0;
    kind_forget(instance);
    return STATUS_OK;
}

/* Check the orders of derivatives: only the first is there. */
static Status first_order(const Instance *instance, const int orders[], size_t n, const char *function)
{
    for (size_t k = 0; k < n; k++) {
        if (orders[k] == 1) continue;
        say(instance, STATUS_ERROR, "%s: the derivative of order %d was asked for; only order 1 is there.", function,
            orders[k]);
        return STATUS_ERROR;
    }
    return STATUS_OK;
}

#if WITH_INPUT_SLOPES
/* How inputs go on from now: valid until they are set again, as the inputs themselves are. */
static Status set_slopes(Instance *instance, const unsigned references[], const int orders[], size_t n,
                         const double slopes[], const char *function)
{
    if (instance && !instance->co_simulation) return not_applicable(instance, function, MODEL_EXCHANGE);
    if (!allowed(instance, INSTANTIATED + INITIALIZATION + STEP, function)) return STATUS_ERROR;
    if (first_order(instance, orders, n, function) != STATUS_OK) return STATUS_ERROR;
    const Values *v = &instance->v;
    for (size_t k = 0; k < n; k++)
        if (variable_of(v, references[k]).group != INPUT)
            return unknown_reference(instance, references[k], "an input", function);
    for (size_t k = 0; k < n; k++) v->slope[variable_of(v, references[k]).index] = slopes[k];
    return STATUS_OK;
}
#endif

#if KIND_HAS_DERIVATIVES
/* dz/dt = dz/dx x' + dz/du u' + dz/dt, of outputs. */
static Status output_slopes(Instance *instance, const unsigned references[], const int orders[], size_t n,
                            double slopes[], const char *function)
{
    if (instance && !instance->co_simulation) return not_applicable(instance, function, MODEL_EXCHANGE);
    if (!allowed(instance, STEP + TERMINATED, function)) return STATUS_ERROR;
    if (KIND_IS_SAMPLED(instance)) return not_applicable(instance, function, "outputs of a sampled model have none");
    Status status = first_order(instance, orders, n, function);
    if (status == STATUS_OK) status = check_derivative(instance, references, n, NULL, 0, function);
    const Values *v = &instance->v;
    clear_seeds(v);
    for (size_t i = 0; status == STATUS_OK && i < v->nx; i++) {
        status = kind_evaluate(instance, i, function);
        v->ds[i] = v->z[i];
    }
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < v->nu; i++) v->ds[v->nx + i] = v->slope[i];
    v->ds[v->nx + v->nu] = 1.0;
    status = kind_product(instance, function);
    for (size_t k = 0; status == STATUS_OK && k < n; k++)
        slopes[k] = sensitivity_of(v, variable_of(v, references[k]));
    return status;
}
#else
static Status output_slopes(Instance *instance, const unsigned references[], const int orders[], size_t n,
                            double slopes[], const char *function)
{
    (void)references, (void)slopes;
    if (first_order(instance, orders, n, function) != STATUS_OK) return STATUS_ERROR;
    return not_applicable(instance, function, NO_DERIVATIVES);
}
#endif
