/* Models that move at samples only, every sample once, the one at the start time included.
 *
 * A step that leaves a sample takes it with the inputs that are set there, and outputs are those of that sample until
 * the next one, its instant included: `set inputs; do step; get outputs` answers the inputs that were set. Inputs that
 * are set at the instant of a sample show that sample's outputs at once, before it is taken.
 */

/* Take the sample with the inputs that v.extra begins with: keep its outputs, and move on to the next one. */
static Status take_sample(Instance *instance, const char *function);

/* How many samples were taken until now, as a real number: whole at a sample. */
static double samples_until(const Instance *instance, double time)
{
    return (time - instance->start_time) / instance->kind.sample_time;
}

static const double LATE = 1e-6; /* a sample counts as reached by this part of its length earlier */

static int is_at_sample(const Instance *instance)
{
    double samples = samples_until(instance, *instance->v.time);
    return fabs(samples - floor(samples + 0.5)) <= LATE;
}

/* Whether inputs that are set now reach the outputs: between samples those of the last sample count. */
static int sees_inputs(const Instance *instance)
{
    return !KIND_IS_SAMPLED(instance) || is_at_sample(instance);
}

/* Whether the outputs are those of the sample before: its end was reached, and no variable was set since. */
static int shows_last_sample(const Instance *instance)
{
    return KIND_IS_SAMPLED(instance) && !instance->was_set && is_at_sample(instance);
}

static Status sampled_step(Instance *instance, double h, const char *function)
{
    const Values *v = &instance->v;
    double time = *v->time, sample_time = instance->kind.sample_time;
    if (is_at_sample(instance)) memcpy(v->extra, v->u, sizeof(double) * v->nu);
    double sample = floor(samples_until(instance, time) + LATE);
    double last = floor(samples_until(instance, time + h) + LATE);
    while (sample < last) {
        Status status = take_sample(instance, function);
        if (status != STATUS_OK) return status;
        sample += 1.0;
        double since = instance->start_time + sample * sample_time - time;
        for (size_t i = 0; i < v->nu; i++) v->extra[i] = v->u[i] + since * v->slope[i];
    }
    return STATUS_OK;
}
