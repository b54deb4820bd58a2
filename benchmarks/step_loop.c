/* How long a step of co-simulation takes in a loop in C: step_loop LIBRARY RESOURCES TOKEN NX NU OUTPUT STEPS H prints
 * the nanoseconds of one round: set the inputs, do a step, get one output. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fmi2Functions.h"

static void log_message(fmi2ComponentEnvironment e, fmi2String name, fmi2Status s, fmi2String c, fmi2String text, ...)
{
    (void)e, (void)name, (void)s, (void)c;
    fprintf(stderr, "%s\n", text);
}

/* CPU time: other programs do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 9) return 2;
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) return 1;
#define FIND(name) fmi2##name##TYPE *name = (fmi2##name##TYPE *)dlsym(library, "fmi2" #name)
    FIND(Instantiate);
    FIND(SetupExperiment);
    FIND(EnterInitializationMode);
    FIND(ExitInitializationMode);
    FIND(SetReal);
    FIND(GetReal);
    FIND(DoStep);
    const fmi2CallbackFunctions callbacks = {log_message, calloc, free, NULL, NULL};
    fmi2Component c = Instantiate("loop", fmi2CoSimulation, words[3], words[2], &callbacks, 0, 0);
    if (!c) return 1;
    unsigned nx = (unsigned)atoi(words[4]), nu = (unsigned)atoi(words[5]), u[64], y = (unsigned)atoi(words[6]);
    int steps = atoi(words[7]);
    double h = atof(words[8]), values[64], output = 0.0, sum = 0.0;
    for (unsigned i = 0; i < nu; i++) u[i] = 1 + 2 * nx + i;
    SetupExperiment(c, 0, 0.0, 0.0, 0, 0.0);
    EnterInitializationMode(c);
    ExitInitializationMode(c);
    double begin = now();
    if (DoStep(c, 0.0, h, 1) != fmi2OK) return 1;
    double first = now() - begin;
    begin = now();
    for (int k = 1; k <= steps; k++) {
        for (unsigned i = 0; i < nu; i++) values[i] = (double)(k & 7);
        SetReal(c, u, nu, values);
        if (DoStep(c, k * h, h, 1) != fmi2OK) return 1;
        GetReal(c, &y, 1, &output);
        sum += output;
    }
    printf("%.1f %.6f %g\n", 1e9 * (now() - begin) / steps, first, sum);
    return 0;
}
