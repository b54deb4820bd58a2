/* Runs an FMU through everything that its runtime does, the wrong way, too, and prints what it computes.
 *
 * driver LIBRARY RESOURCES TOKEN NX NU NY IS_SAMPLED, compiled with -DVERSION=2 or 3: for sanitizers, and for machines
 * that have no Python. Value references are those of fmilin: time, x, der(x), u, y.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define OPEN(path) ((void *)LoadLibraryA(path))
#define FIND(library, name) ((void *)GetProcAddress((HMODULE)(library), name))
#else
#include <dlfcn.h>
#define OPEN(path) dlopen(path, RTLD_NOW | RTLD_LOCAL)
#define FIND(library, name) dlsym(library, name)
#endif

#if VERSION == 2
#include "fmi2Functions.h"
#define CALL(name) ((fmi2##name##TYPE *)find("fmi2" #name))
typedef fmi2Component Component;
#else
#include "fmi3Functions.h"
#define CALL(name) ((fmi3##name##TYPE *)find("fmi3" #name))
typedef fmi3Instance Component;
#endif

enum { MOST = 64, ME = 0, CS = 1 };

static void *library;
static const char *resources, *token;
static unsigned nx, nu, ny, nf;
static int messages;

static void *find(const char *name)
{
    void *found = FIND(library, name);
    if (found) return found;
    printf("there is no %s\n", name);
    exit(1);
}

static void expect(const char *what, int status, int wanted)
{
    if (status != wanted) printf("%s: status %d instead of %d\n", what, status, wanted);
}

static void show(const char *what, const double *values, unsigned n)
{
    printf("%s", what);
    for (unsigned i = 0; i < n; i++) printf(" %.17g", values[i]);
    printf("\n");
}

static void references(unsigned first, unsigned n, unsigned *r)
{
    for (unsigned i = 0; i < n; i++) r[i] = first + i;
}

#if VERSION == 2
static void log_message(fmi2ComponentEnvironment e, fmi2String name, fmi2Status s, fmi2String c, fmi2String text, ...)
{
    (void)e, (void)name, (void)s, (void)c;
    messages += text[0] != '\0';
}

static const fmi2CallbackFunctions callbacks = {log_message, calloc, free, NULL, NULL};

static Component make(int kind, const char *its_token, const char *place)
{
    return CALL(Instantiate)("one", kind == CS ? fmi2CoSimulation : fmi2ModelExchange, its_token, place, &callbacks, 0, 0);
}

static void initialize(Component c)
{
    expect("setup", CALL(SetupExperiment)(c, 0, 0.0, 1.0, 0, 0.0), 0);
    expect("enter", CALL(EnterInitializationMode)(c), 0);
    expect("exit", CALL(ExitInitializationMode)(c), 0);
}

static int set(Component c, unsigned *r, unsigned n, double *v) { return CALL(SetReal)(c, r, n, v); }
static int get(Component c, unsigned *r, unsigned n, double *v) { return CALL(GetReal)(c, r, n, v); }
static int step(Component c, double t, double h) { return CALL(DoStep)(c, t, h, 1); }

static int product(Component c, unsigned *r, unsigned n, unsigned *k, unsigned m, double *seed, double *v)
{
    return CALL(GetDirectionalDerivative)(c, r, n, k, m, seed, v);
}

static void particular(Component c, unsigned *u, double *v)
{
    int orders[MOST];
    for (unsigned i = 0; i < nu; i++) orders[i] = 1, v[i] = 0.25;
    expect("slopes", CALL(SetRealInputDerivatives)(c, u, nu, orders, v), 0);
    orders[0] = 2;
    expect("second order", CALL(SetRealInputDerivatives)(c, u, 1, orders, v), 3);
}
#else
static void log_message(fmi3InstanceEnvironment e, fmi3Status s, fmi3String c, fmi3String text)
{
    (void)e, (void)s, (void)c;
    messages += text[0] != '\0';
}

static Component make(int kind, const char *its_token, const char *place)
{
    if (kind == CS)
        return CALL(InstantiateCoSimulation)("one", its_token, place, 0, 0, 0, 0, NULL, 0, NULL, log_message, NULL);
    return CALL(InstantiateModelExchange)("one", its_token, place, 0, 0, NULL, log_message);
}

static void initialize(Component c)
{
    expect("enter", CALL(EnterInitializationMode)(c, 0, 0.0, 1.0, 0, 0.0), 0);
    expect("exit", CALL(ExitInitializationMode)(c), 0);
}

static int set(Component c, unsigned *r, unsigned n, double *v) { return CALL(SetFloat64)(c, r, n, v, n); }
static int get(Component c, unsigned *r, unsigned n, double *v) { return CALL(GetFloat64)(c, r, n, v, n); }

static int step(Component c, double t, double h)
{
    fmi3Boolean a, b, early;
    double last;
    return CALL(DoStep)(c, t, h, 1, &a, &b, &early, &last);
}

static int product(Component c, unsigned *r, unsigned n, unsigned *k, unsigned m, double *seed, double *v)
{
    return CALL(GetDirectionalDerivative)(c, r, n, k, m, seed, m, v, n);
}

static void particular(Component c, unsigned *u, double *v)
{
    unsigned y[MOST];
    double seed[MOST];
    references(1 + nx + nf + nu, ny, y);
    for (unsigned i = 0; i < ny; i++) seed[i] = i + 1.0;
    expect("adjoint", CALL(GetAdjointDerivative)(c, y, ny, u, nu, seed, ny, v, nu), 0);
    show("adjoint", v, nu);
}
#endif

#define STATES(Name) CALL(Name##FMUState)
#if VERSION == 2
#undef STATES
#define STATES(Name) CALL(Name##FMUstate)
#define SIZE CALL(SerializedFMUstateSize)
#define DESERIALIZE CALL(DeSerializeFMUstate)
#else
#define SIZE CALL(SerializedFMUStateSize)
#define DESERIALIZE CALL(DeserializeFMUState)
#endif

/* Save, go on, come back through bytes: the outputs must be the same. */
static void there_and_back(Component c, unsigned *y, double t)
{
    void *saved = NULL, *again = NULL;
    size_t size = 0;
    double before[MOST], after[MOST];
    expect("save", STATES(Get)(c, &saved), 0);
    expect("save again", STATES(Get)(c, &saved), 0);
    expect("size", SIZE(c, saved, &size), 0);
    char *bytes = malloc(size);
    expect("serialize", STATES(Serialize)(c, saved, (void *)bytes, size), 0);
    expect("too small", STATES(Serialize)(c, saved, (void *)bytes, size - 1), 3);
    expect("step", step(c, t, 0.125), 0);
    get(c, y, ny, before);
    expect("deserialize", DESERIALIZE(c, (void *)bytes, size, &again), 0);
    expect("restore", STATES(Set)(c, again), 0);
    expect("step", step(c, t, 0.125), 0);
    get(c, y, ny, after);
    if (memcmp(before, after, sizeof(double) * ny) != 0) printf("a restored state goes on otherwise\n");
    bytes[0] ^= 1;
    expect("foreign bytes", DESERIALIZE(c, (void *)bytes, size, &again), 3);
    free(bytes);
    STATES(Free)(c, &saved);
    STATES(Free)(c, &again);
}

static void co_simulation(void)
{
    unsigned x[MOST], u[MOST], y[MOST], wrong = 1000000;
    double v[MOST] = {0.0}, seed[MOST];
    references(1, nx, x), references(1 + nx + nf, nu, u), references(1 + nx + nf + nu, ny, y);
    Component c = make(CS, token, resources);
    if (!c) {
        printf("no instance\n");
        return;
    }
    expect("unknown", get(c, &wrong, 1, v), 3);
    initialize(c);
    for (unsigned i = 0; i < nu; i++) v[i] = 0.5 * (i + 1);
    expect("set", set(c, u, nu, v), 0);
    double t = 1.0;
    for (int k = 0; k < 16; k++, t += 0.125) expect("step", step(c, t, k % 2 ? 0.125 : 0.125 * (1.0 + 1e-15)), 0);
    particular(c, u, v);
    for (int k = 0; k < 8; t += 0.0625 * (1 + k), k++) expect("step", step(c, t, 0.0625 * (1 + k)), 0);
    expect("backwards", step(c, t, -0.1), 3);
    expect("elsewhere", step(c, t + 1.0, 0.1), 3);
    expect("get", get(c, y, ny, v), 0);
    show("outputs", v, ny);
    expect("get", get(c, x, nx, v), 0);
    show("states", v, nx);
    for (unsigned i = 0; i < nu; i++) seed[i] = 1.0 + i;
    expect("product", product(c, y, ny, u, nu, seed, v), 0);
    show("product", v, ny);
    expect("unknown column", product(c, y, ny, &wrong, 1, seed, v), 3);
    there_and_back(c, y, t);
    expect("terminate", CALL(Terminate)(c), 0);
    expect("reset", CALL(Reset)(c), 0);
    initialize(c);
    expect("get", get(c, x, nx, v), 0);
    show("start", v, nx);
    CALL(FreeInstance)(c);
}

static void model_exchange(void)
{
    double v[MOST];
    Component c = make(ME, token, resources);
    if (!c) {
        printf("no instance\n");
        return;
    }
    initialize(c);
    expect("continuous", CALL(EnterContinuousTimeMode)(c), 0);
    for (unsigned i = 0; i < nx; i++) v[i] = 0.1 * (i + 1);
    expect("states", CALL(SetContinuousStates)(c, v, nx), 0);
#if VERSION == 2
    expect("rates", CALL(GetDerivatives)(c, v, nx), 0);
#else
    expect("rates", CALL(GetContinuousStateDerivatives)(c, v, nx), 0);
#endif
    show("rates", v, nx);
    expect("too many", CALL(GetContinuousStates)(c, v, nx + 1), 3);
    expect("step", step(c, 1.0, 0.1), 3);
    CALL(FreeInstance)(c);
}

int main(int count, char **words)
{
    if (count != 8) return 2;
    library = OPEN(words[1]);
    if (!library) {
        printf("'%s' cannot be loaded\n", words[1]);
        return 1;
    }
    resources = words[2], token = words[3];
    nx = (unsigned)atoi(words[4]), nu = (unsigned)atoi(words[5]), ny = (unsigned)atoi(words[6]);
    int is_sampled = atoi(words[7]);
    nf = is_sampled ? 0 : nx;
    co_simulation();
    if (!is_sampled) model_exchange();
    else if (make(ME, token, resources)) printf("a sampled model in continuous time\n");
    if (make(CS, "wrong", resources)) printf("a wrong token\n");
    Component without_file = make(CS, token, "nowhere%2Z"), without_place = make(CS, token, NULL);
    printf("alone %d %d\n", without_file != NULL, without_place != NULL); /* whether no file is needed */
    CALL(FreeInstance)(without_file);
    CALL(FreeInstance)(without_place);
    CALL(FreeInstance)(NULL);
    expect("no instance", CALL(Terminate)(NULL), 3);
    printf("messages %d\n", messages);
    return 0;
}
