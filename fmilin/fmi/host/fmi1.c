/* FMI 1.0: model exchange and co-simulation. A Boolean is a char. */
#include <stdlib.h>
#include <string.h>

#include "fmi.h"
#include "values.h"

struct callbacks {
  void (*logger)(void *, const char *, int, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
};

struct slave_callbacks {
  struct callbacks first;
  void (*step_finished)(void *, int);
};

static const struct callbacks callbacks = {log_formatted, calloc, free};
static const struct slave_callbacks slave_callbacks = {{log_formatted, calloc, free}, NULL};

static int32_t instantiate_model(struct fmu *fmu, const struct call *call) {
  if (!keep_identity(fmu, call)) {
    return HOST_NO_MEMORY;
  }
  typedef void *(*instantiate_function)(const char *, const char *, struct callbacks, char);
  char logs = (call->immediate & 2) != 0;
  fmu->component = ((instantiate_function)call->function)(fmu->identity[0], fmu->identity[1], callbacks, logs);
  return fmu->component == NULL ? HOST_NO_INSTANCE : OK;
}

static int32_t instantiate_slave(struct fmu *fmu, const struct call *call) {
  if (!keep_identity(fmu, call)) {
    return HOST_NO_MEMORY;
  }
  typedef void *(*instantiate_function)(const char *, const char *, const char *, const char *, double, char, char,
                                        struct slave_callbacks, char);
  char is_visible = (call->immediate & 1) != 0;
  char logs = (call->immediate & 2) != 0;
  double waits_for_its_tool = 0.0; /* milliseconds; 0: without limit */
  fmu->component = ((instantiate_function)call->function)(fmu->identity[0], fmu->identity[1], fmu->identity[2],
                                                          "application/x-fmu-sharedlibrary", waits_for_its_tool,
                                                          is_visible, 0, slave_callbacks, logs);
  return fmu->component == NULL ? HOST_NO_INSTANCE : OK;
}

struct event_info {
  char converged, references_changed, values_changed, terminate, scheduled;
  double time;
};

static void write_events(const struct event_info *info, double *answers) {
  answers[0] = info->converged == 0;
  answers[1] = info->terminate != 0;
  answers[2] = 0.0;
  answers[3] = info->values_changed != 0;
  answers[4] = info->scheduled != 0;
  answers[5] = info->time;
}

static int32_t initialize(struct fmu *fmu, const struct call *call) {
  if (call->counts[1] != 6) {
    return HOST_MALFORMED;
  }
  const double *numbers = call->operands[0];
  char with_tolerance = (call->immediate & 1) != 0;
  struct event_info info = {0, 0, 0, 0, 0, 0.0};
  int status = ((int (*)(void *, char, double, struct event_info *))call->function)(fmu->component, with_tolerance,
                                                                                   numbers[0], &info);
  write_events(&info, call->operands[1]);
  return status;
}

static int32_t initialize_slave(struct fmu *fmu, const struct call *call) {
  const double *numbers = call->operands[0];
  char with_stop = (call->immediate & 2) != 0;
  return ((int (*)(void *, double, char, double))call->function)(fmu->component, numbers[1], with_stop, numbers[2]);
}

static int32_t update_events(struct fmu *fmu, const struct call *call) {
  struct event_info info = {0, 0, 0, 0, 0, 0.0};
  char wants_intermediate_results = 0;
  int status = ((int (*)(void *, char, struct event_info *))call->function)(fmu->component, wants_intermediate_results,
                                                                           &info);
  write_events(&info, call->operands[0]);
  return status;
}

static int32_t set_debug_logging(struct fmu *fmu, const struct call *call) {
  char is_on = (call->immediate & 1) != 0;
  return ((int (*)(void *, char))call->function)(fmu->component, is_on);
}

static int32_t completed_step(struct fmu *fmu, const struct call *call) {
  char wants_event = 0;
  int status = ((int (*)(void *, char *))call->function)(fmu->component, &wants_event);
  double *answers = call->operands[0];
  answers[0] = wants_event != 0;
  answers[1] = 0.0;
  return status;
}

static int32_t do_step(struct fmu *fmu, const struct call *call) {
  double time = *(double *)call->operands[0];
  double step = *(double *)call->operands[1];
  memset(call->operands[2], 0, 4 * sizeof(double));
  char is_new_step = (call->immediate & 1) != 0;
  return ((int (*)(void *, double, double, char))call->function)(fmu->component, time, step, is_new_step);
}

static int32_t get_values(struct fmu *fmu, const struct call *call) {
  return get_early_values(fmu, call, AS_BYTE_FLAG);
}

static int32_t set_values(struct fmu *fmu, const struct call *call) {
  return set_early_values(fmu, call, AS_BYTE_FLAG);
}

static const char *const get_names[LAST_TYPE + 1] = {
    [FLOAT64] = "GetReal", [INT32] = "GetInteger", [BOOLEAN] = "GetBoolean", [TEXT] = "GetString"};
static const char *const set_names[LAST_TYPE + 1] = {
    [FLOAT64] = "SetReal", [INT32] = "SetInteger", [BOOLEAN] = "SetBoolean", [TEXT] = "SetString"};

const struct standard fmi1_model_exchange = {
    .prefix = "fmi",
    .entries =
        {
            [FILL] = {fill, NULL},
            [COPY] = {copy, NULL},
            [INSTANTIATE] = {instantiate_model, "InstantiateModel"},
            [FREE_INSTANCE] = {free_instance, "FreeModelInstance"},
            [TERMINATE] = {call_plain, "Terminate"},
            [ENTER_INITIALIZATION] = {initialize, "Initialize"},
            [UPDATE_DISCRETE_STATES] = {update_events, "EventUpdate"},
            [SET_DEBUG_LOGGING] = {set_debug_logging, "SetDebugLogging"},
            [SET_TIME] = {call_with_time, "SetTime"},
            [SET_CONTINUOUS_STATES] = {call_with_doubles, "SetContinuousStates"},
            [GET_CONTINUOUS_STATES] = {call_with_doubles, "GetContinuousStates"},
            [GET_DERIVATIVES] = {call_with_doubles, "GetDerivatives"},
            [GET_EVENT_INDICATORS] = {call_with_doubles, "GetEventIndicators"},
            [GET_NOMINALS] = {call_with_doubles, "GetNominalContinuousStates"},
            [GET_STATE_REFERENCES] = {call_with_references, "GetStateValueReferences"},
            [COMPLETED_STEP] = {completed_step, "CompletedIntegratorStep"},
            [GET_VALUES] = {get_values, NULL},
            [SET_VALUES] = {set_values, NULL},
        },
    .get_names = get_names,
    .set_names = set_names,
};

const struct standard fmi1_co_simulation = {
    .prefix = "fmi",
    .entries =
        {
            [FILL] = {fill, NULL},
            [COPY] = {copy, NULL},
            [INSTANTIATE] = {instantiate_slave, "InstantiateSlave"},
            [FREE_INSTANCE] = {free_instance, "FreeSlaveInstance"},
            [TERMINATE] = {call_plain, "TerminateSlave"},
            [RESET] = {call_plain, "ResetSlave"},
            [ENTER_INITIALIZATION] = {initialize_slave, "InitializeSlave"},
            [SET_DEBUG_LOGGING] = {set_debug_logging, "SetDebugLogging"},
            [GET_VALUES] = {get_values, NULL},
            [SET_VALUES] = {set_values, NULL},
            [DO_STEP] = {do_step, "DoStep"},
        },
    .get_names = get_names,
    .set_names = set_names,
};
