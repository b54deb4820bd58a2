/* FMI 2.0: model exchange and co-simulation. */
#include <stdlib.h>
#include <string.h>

#include "fmi.h"
#include "values.h"

struct callbacks {
  void (*logger)(void *, const char *, int, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*step_finished)(void *, int);
  void *environment;
};

static const struct callbacks callbacks = {log_formatted, calloc, free, NULL, NULL};

static int32_t instantiate(struct fmu *fmu, const struct call *call) {
  if (!keep_identity(fmu, call)) {
    return HOST_NO_MEMORY;
  }
  typedef void *(*instantiate_function)(const char *, int, const char *, const char *, const struct callbacks *, int, int);
  char **identity = fmu->identity;
  int is_visible = (call->immediate & 1) != 0;
  int logs = (call->immediate & 2) != 0;
  fmu->component = ((instantiate_function)call->function)(identity[0], (int)fmu->interface, identity[1], identity[2],
                                                          &callbacks, is_visible, logs);
  return fmu->component == NULL ? HOST_NO_INSTANCE : OK;
}

static int32_t setup_experiment(struct fmu *fmu, const struct call *call) {
  const double *numbers = call->operands[0];
  int with_tolerance = (call->immediate & 1) != 0;
  int with_stop = (call->immediate & 2) != 0;
  return ((int (*)(void *, int, double, double, int, double))call->function)(fmu->component, with_tolerance, numbers[0],
                                                                             numbers[1], with_stop, numbers[2]);
}

struct event_info {
  int again, terminate, nominals_changed, values_changed, scheduled;
  double time;
};

static int32_t update_discrete_states(struct fmu *fmu, const struct call *call) {
  struct event_info info = {0, 0, 0, 0, 0, 0.0};
  int status = ((int (*)(void *, struct event_info *))call->function)(fmu->component, &info);
  double *answers = call->operands[0];
  answers[0] = info.again != 0;
  answers[1] = info.terminate != 0;
  answers[2] = info.nominals_changed != 0;
  answers[3] = info.values_changed != 0;
  answers[4] = info.scheduled != 0;
  answers[5] = info.time;
  return status;
}

static int32_t set_debug_logging(struct fmu *fmu, const struct call *call) {
  const char **categories;
  size_t count;
  int32_t status = list_categories(fmu, call, &categories, &count);
  if (status != OK) {
    return status;
  }
  int is_on = (call->immediate & 1) != 0;
  return ((int (*)(void *, int, size_t, const char *const *))call->function)(fmu->component, is_on, count, categories);
}

static int32_t completed_step(struct fmu *fmu, const struct call *call) {
  int wants_event = 0;
  int terminates = 0;
  int forgets = (call->immediate & 1) != 0;
  int status = ((int (*)(void *, int, int *, int *))call->function)(fmu->component, forgets, &wants_event, &terminates);
  double *answers = call->operands[0];
  answers[0] = wants_event != 0;
  answers[1] = terminates != 0;
  return status;
}

static int32_t directional(struct fmu *fmu, const struct call *call) {
  typedef int (*directional_function)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, double *);
  if (call->counts[2] != call->counts[1] || call->counts[3] != call->counts[0]) {
    return HOST_MALFORMED;
  }
  return ((directional_function)call->function)(fmu->component, call->operands[0], call->counts[0], call->operands[1],
                                                call->counts[1], call->operands[2], call->operands[3]);
}

static int32_t do_step(struct fmu *fmu, const struct call *call) {
  double time = *(double *)call->operands[0];
  double step = *(double *)call->operands[1];
  memset(call->operands[2], 0, 4 * sizeof(double));
  int forgets = (call->immediate & 1) != 0;
  return ((int (*)(void *, double, double, int))call->function)(fmu->component, time, step, forgets);
}

static int32_t get_values(struct fmu *fmu, const struct call *call) {
  return get_early_values(fmu, call, AS_INT_FLAG);
}

static int32_t set_values(struct fmu *fmu, const struct call *call) {
  return set_early_values(fmu, call, AS_INT_FLAG);
}

static const char *const get_names[LAST_TYPE + 1] = {
    [FLOAT64] = "GetReal", [INT32] = "GetInteger", [BOOLEAN] = "GetBoolean", [TEXT] = "GetString"};
static const char *const set_names[LAST_TYPE + 1] = {
    [FLOAT64] = "SetReal", [INT32] = "SetInteger", [BOOLEAN] = "SetBoolean", [TEXT] = "SetString"};

const struct standard fmi2 = {
    .prefix = "fmi2",
    .entries =
        {
            [FILL] = {fill, NULL},
            [COPY] = {copy, NULL},
            [INSTANTIATE] = {instantiate, "Instantiate"},
            [FREE_INSTANCE] = {free_instance, "FreeInstance"},
            [TERMINATE] = {call_plain, "Terminate"},
            [RESET] = {call_plain, "Reset"},
            [SETUP_EXPERIMENT] = {setup_experiment, "SetupExperiment"},
            [ENTER_INITIALIZATION] = {call_plain, "EnterInitializationMode"},
            [EXIT_INITIALIZATION] = {call_plain, "ExitInitializationMode"},
            [ENTER_EVENT_MODE] = {call_plain, "EnterEventMode"},
            [ENTER_CONTINUOUS_TIME_MODE] = {call_plain, "EnterContinuousTimeMode"},
            [UPDATE_DISCRETE_STATES] = {update_discrete_states, "NewDiscreteStates"},
            [SET_DEBUG_LOGGING] = {set_debug_logging, "SetDebugLogging"},
            [SET_TIME] = {call_with_time, "SetTime"},
            [SET_CONTINUOUS_STATES] = {call_with_doubles, "SetContinuousStates"},
            [GET_CONTINUOUS_STATES] = {call_with_doubles, "GetContinuousStates"},
            [GET_DERIVATIVES] = {call_with_doubles, "GetDerivatives"},
            [GET_EVENT_INDICATORS] = {call_with_doubles, "GetEventIndicators"},
            [GET_NOMINALS] = {call_with_doubles, "GetNominalsOfContinuousStates"},
            [COMPLETED_STEP] = {completed_step, "CompletedIntegratorStep"},
            [GET_VALUES] = {get_values, NULL},
            [SET_VALUES] = {set_values, NULL},
            [DIRECTIONAL] = {directional, "GetDirectionalDerivative"},
            [DO_STEP] = {do_step, "DoStep"},
            [SAVE_STATE] = {save_state, "GetFMUstate"},
            [RESTORE_STATE] = {restore_state, "SetFMUstate"},
            [FREE_STATE] = {free_state, "FreeFMUstate"},
        },
    .get_names = get_names,
    .set_names = set_names,
};
