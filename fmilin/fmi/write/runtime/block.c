/* A step in C as an Instance: see block.h and instance.h.
 *
 * Outputs that follow the inputs at a sample are those of a step on a copy of the memory; the memory itself moves when
 * time does.
 */
#include "component.c"
#include "samples.c"

static const double START[N_READ + 1] = {START_VALUES};
static const int PLACE[component_INPUTS + 1] = {PLACES};

static void step_with(component *memory, const double *u, double *out)
{
    double in[component_INPUTS + 1];
    for (int i = 0; i < component_INPUTS; i++) in[i] = u[PLACE[i]];
    component_step(memory, in, out);
}

static int kind_open(Instance *instance, const char *resources, const char *function)
{
    (void)resources, (void)function;
    Kind *k = &instance->kind;
    const Values v = {
        .nu = N_READ, .ny = component_OUTPUTS, .n_extra = sizeof k->kept / sizeof(double),
        .time = &k->time, .u = k->u, .extra = (double *)(void *)&k->kept, .slope = k->slope, .z = k->z,
    };
    instance->v = v;
    instance->token = MODEL_TOKEN;
    k->sample_time = component_SAMPLE_TIME;
    return 1;
}

static void kind_close(Instance *instance) { (void)instance; }

static void kind_start(Instance *instance)
{
    Kind *k = &instance->kind;
    component_init(&k->kept.memory);
    memcpy(k->u, START, sizeof START);
    memcpy(k->kept.held, START, sizeof START);
}

static void kind_forget(Instance *instance) { instance->kind.is_known = 0; }

static Status kind_evaluate(Instance *instance, size_t row, const char *function)
{
    (void)row, (void)function; /* all rows are evaluated together */
    Kind *k = &instance->kind;
    if (k->is_known) return STATUS_OK;
    if (shows_last_sample(instance)) {
        memcpy(k->z, k->kept.shown, sizeof k->z);
    } else {
        component copy = k->kept.memory;
        step_with(&copy, sees_inputs(instance) ? k->u : k->kept.held, k->z);
    }
    k->is_known = 1;
    return STATUS_OK;
}

static Status take_sample(Instance *instance, const char *function)
{
    (void)function;
    Kind *k = &instance->kind;
    step_with(&k->kept.memory, k->kept.held, k->kept.shown);
    return STATUS_OK;
}

static Status kind_step(Instance *instance, double h, const char *function)
{
    return sampled_step(instance, h, function);
}
