/* A model whose equations are C code, as an Instance: see instance.h. */
#include "model.c"

static int kind_open(Instance *instance, const char *resources, const char *function)
{
    (void)resources, (void)function;
    Model *m = &instance->kind.model;
    const Values v = {
        .nx = NX, .nf = NX, .nu = NU, .ny = NY, .nd = ND, .np = NP, .n_extra = 1,
        .time = &m->time, .x = m->x, .u = m->u, .p = m->p, .extra = &instance->kind.step,
        .slope = instance->kind.slope, .z = m->z, .ds = m->ds, .dz = m->dz, .x_nominal = X_NOMINAL,
    };
    instance->v = v;
    instance->token = MODEL_TOKEN;
    return 1;
}

static void kind_close(Instance *instance) { (void)instance; }

static void kind_start(Instance *instance)
{
    model_start(&instance->kind.model);
    instance->kind.step = 0.0;
}

static void kind_forget(Instance *instance) { instance->kind.model.computed = NOTHING_COMPUTED; }

static Status solved(const Instance *instance, int outcome, const char *function)
{
    const Model *m = &instance->kind.model;
    if (outcome == SOLVED) return STATUS_OK;
    if (outcome == SINGULAR)
        say(instance, STATUS_DISCARD,
            "%s: the linear system for the accelerations and multipliers is singular at time %.17g: it does not "
            "determine '%s'.", function, m->time, UNKNOWN_NAMES[m->culprit]);
#if NEWTON
    else if (outcome == NOT_FOUND)
        say(instance, STATUS_DISCARD,
            "%s: Newton's iteration found no values of the algebraic variables at time %.17g: '%s' is left.", function,
            m->time, EQUATION_NAMES[m->culprit]);
#endif
    else
        say(instance, STATUS_DISCARD,
            "%s: the linear system for the accelerations and multipliers has a coefficient that is infinite or not "
            "a number at time %.17g.", function, m->time);
    return STATUS_DISCARD;
}

static Status kind_evaluate(Instance *instance, size_t row, const char *function)
{
    (void)row; /* all rows are evaluated together */
    return solved(instance, model_evaluate(&instance->kind.model), function);
}

#if HAS_DERIVATIVES
static Status kind_product(Instance *instance, const char *function)
{
    return solved(instance, model_product(&instance->kind.model), function);
}

#if WITH_ADJOINT
#include "adjoint.c"

static Status kind_adjoint(Instance *instance, const char *function)
{
    return solved(instance, model_adjoint_product(&instance->kind.model), function);
}
#endif
#endif

#include "integrator.c"
