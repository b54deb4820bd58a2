/* The least that an evaluation of an FMI 2.0 FMU can cost: the calls of one visit, in a loop, from C.

   driver LIBRARY GUID RESOURCES NX NU NY ROUNDS, followed by the value references of inputs and outputs.
   Prints nanoseconds per visit and per directional derivative, each the best of five. */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fmi2Functions.h"

static void quiet(void *e, fmi2String i, fmi2Status s, fmi2String c, fmi2String m, ...) {}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}
#define F(name) fmi2##name##TYPE *name = (fmi2##name##TYPE *)dlsym(library, "fmi2" #name)
#define CHECK(call) if ((call) > fmi2Warning) return 2

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) return 1;
    F(Instantiate); F(SetupExperiment); F(EnterInitializationMode); F(ExitInitializationMode); F(NewDiscreteStates);
    F(EnterContinuousTimeMode); F(SetTime); F(SetContinuousStates); F(GetContinuousStates); F(SetReal); F(GetReal);
    F(GetDerivatives); F(GetDirectionalDerivative);
    fmi2CallbackFunctions callbacks = {quiet, calloc, free, NULL, NULL};
    fmi2EventInfo info;
    size_t nx = atoi(argv[4]), nu = atoi(argv[5]), ny = atoi(argv[6]), rounds = atoi(argv[7]);
    fmi2ValueReference u[nu + 1], y[ny + 1], knowns[nx + nu + 1], unknowns[nx + ny + 1];
    for (size_t i = 0; i < nu; i++) u[i] = atoi(argv[8 + i]);
    for (size_t i = 0; i < ny; i++) y[i] = atoi(argv[8 + nu + i]);
    for (size_t i = 0; i < nx + nu; i++) knowns[i] = atoi(argv[8 + nu + ny + i]);
    for (size_t i = 0; i < nx + ny; i++) unknowns[i] = atoi(argv[8 + 2 * nu + ny + nx + i]);
    double x[nx + 1], rates[nx + 1], values[ny + 1], inputs[nu + 1], seed = 1, out[nx + ny + 1];
    fmi2Component c = Instantiate("m", fmi2ModelExchange, argv[2], argv[3], &callbacks, 0, 0);
    if (!c) return 1;
    CHECK(SetupExperiment(c, 0, 0, 0, 0, 0));
    CHECK(EnterInitializationMode(c));
    CHECK(ExitInitializationMode(c));
    do CHECK(NewDiscreteStates(c, &info)); while (info.newDiscreteStatesNeeded);
    CHECK(EnterContinuousTimeMode(c));
    CHECK(GetContinuousStates(c, x, nx));
    if (nu) CHECK(GetReal(c, u, nu, inputs));
    double visit = 1e300, product = 1e300;
    for (int k = 0; k < 5; k++) {
        double begin = now();
        for (size_t i = 0; i < rounds; i++) {
            if (nx) x[0] += i % 2 ? 1e-9 : -1e-9; /* another point each time: nothing may come out of a store */
            CHECK(SetTime(c, 0));
            CHECK(SetContinuousStates(c, x, nx));
            if (nu) CHECK(SetReal(c, u, nu, inputs));
            CHECK(GetContinuousStates(c, x, nx));
            CHECK(GetDerivatives(c, rates, nx));
            if (ny) CHECK(GetReal(c, y, ny, values));
        }
        double time = (now() - begin) / rounds;
        visit = time < visit ? time : visit;
        begin = now();
        for (size_t i = 0; i < rounds; i++)
            CHECK(GetDirectionalDerivative(c, unknowns, nx + ny, knowns + i % (nx + nu), 1, &seed, out));
        time = (now() - begin) / rounds;
        product = time < product ? time : product;
    }
    printf("%g %g\n", visit, product);
    return 0;
}
