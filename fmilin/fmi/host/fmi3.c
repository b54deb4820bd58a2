/* FMI 3.0: model exchange and co-simulation. */
#include <string.h>

#include "fmi.h"
#include "values.h"

typedef void (*log_function)(void *, int, const char *, const char *);

static void log_plain(void *environment, int status, const char *category, const char *text) {
  (void)environment;
  log_record(status, category, text);
}

static int32_t instantiate(struct fmu *fmu, const struct call *call) {
  if (!keep_identity(fmu, call)) {
    return HOST_NO_MEMORY;
  }
  char **identity = fmu->identity;
  bool is_visible = (call->immediate & 1) != 0;
  bool logs = (call->immediate & 2) != 0;
  if (fmu->interface == MODEL_EXCHANGE) {
    typedef void *(*instantiate_function)(const char *, const char *, const char *, bool, bool, void *, log_function);
    fmu->component = ((instantiate_function)call->function)(identity[0], identity[1], identity[2], is_visible, logs,
                                                            NULL, log_plain);
  } else {
    typedef void *(*instantiate_function)(const char *, const char *, const char *, bool, bool, bool, bool,
                                          const uint32_t *, size_t, void *, log_function, function);
    bool has_event_mode = (call->immediate & 4) != 0;
    bool may_return_early = (call->immediate & 8) != 0;
    fmu->component = ((instantiate_function)call->function)(identity[0], identity[1], identity[2], is_visible, logs,
                                                            has_event_mode, may_return_early, NULL, 0, NULL, log_plain,
                                                            NULL);
  }
  return fmu->component == NULL ? HOST_NO_INSTANCE : OK;
}

static int32_t enter_initialization(struct fmu *fmu, const struct call *call) {
  const double *numbers = call->operands[0];
  bool with_tolerance = (call->immediate & 1) != 0;
  bool with_stop = (call->immediate & 2) != 0;
  return ((int (*)(void *, bool, double, double, bool, double))call->function)(
      fmu->component, with_tolerance, numbers[0], numbers[1], with_stop, numbers[2]);
}

/* Flags that an FMU writes are read as bytes: another value than 0 or 1 must not matter. */
typedef uint8_t flag;

static int32_t update_discrete_states(struct fmu *fmu, const struct call *call) {
  flag again = 0;
  flag terminate = 0;
  flag nominals_changed = 0;
  flag values_changed = 0;
  flag scheduled = 0;
  double time = 0.0;
  int status = ((int (*)(void *, flag *, flag *, flag *, flag *, flag *, double *))call->function)(
      fmu->component, &again, &terminate, &nominals_changed, &values_changed, &scheduled, &time);
  double *answers = call->operands[0];
  answers[0] = again != 0;
  answers[1] = terminate != 0;
  answers[2] = nominals_changed != 0;
  answers[3] = values_changed != 0;
  answers[4] = scheduled != 0;
  answers[5] = time;
  return status;
}

static int32_t set_debug_logging(struct fmu *fmu, const struct call *call) {
  const char **categories;
  size_t count;
  int32_t status = list_categories(fmu, call, &categories, &count);
  if (status != OK) {
    return status;
  }
  bool is_on = (call->immediate & 1) != 0;
  return ((int (*)(void *, bool, size_t, const char *const *))call->function)(fmu->component, is_on, count, categories);
}

static int32_t completed_step(struct fmu *fmu, const struct call *call) {
  flag wants_event = 0;
  flag terminates = 0;
  bool forgets = (call->immediate & 1) != 0;
  int status = ((int (*)(void *, bool, flag *, flag *))call->function)(fmu->component, forgets, &wants_event, &terminates);
  double *answers = call->operands[0];
  answers[0] = wants_event != 0;
  answers[1] = terminates != 0;
  return status;
}

static int32_t count_numbers(struct fmu *fmu, const struct call *call) {
  size_t number = 0;
  int status = ((int (*)(void *, size_t *))call->function)(fmu->component, &number);
  uint64_t wide = number; /* as a size of 32 bits it is never above the largest */
  *(int64_t *)call->operands[0] = wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
  return status;
}

static int32_t sensitivities(struct fmu *fmu, const struct call *call) {
  typedef int (*sensitivity_function)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, size_t,
                                      double *, size_t);
  return ((sensitivity_function)call->function)(fmu->component, call->operands[0], call->counts[0], call->operands[1],
                                                call->counts[1], call->operands[2], call->counts[2], call->operands[3],
                                                call->counts[3]);
}

static int32_t do_step(struct fmu *fmu, const struct call *call) {
  double time = *(double *)call->operands[0];
  double step = *(double *)call->operands[1];
  bool forgets = (call->immediate & 1) != 0;
  flag needs_event = 0;
  flag terminates = 0;
  flag returns_early = 0;
  double reached = 0.0;
  int status = ((int (*)(void *, double, double, bool, flag *, flag *, flag *, double *))call->function)(
      fmu->component, time, step, forgets, &needs_event, &terminates, &returns_early, &reached);
  double *answers = call->operands[2];
  answers[0] = needs_event != 0;
  answers[1] = terminates != 0;
  answers[2] = returns_early != 0;
  answers[3] = reached;
  return status <= WARNING && (terminates != 0 || returns_early != 0) ? HOST_STOPPED : status;
}

static enum storage storage_of(uint32_t type) {
  static const enum storage storages[LAST_TYPE + 1] = {
      [FLOAT64] = AS_DOUBLE, [FLOAT32] = AS_FLOAT, [INT8] = AS_I8,   [UINT8] = AS_U8,        [INT16] = AS_I16,
      [UINT16] = AS_U16,     [INT32] = AS_I32,     [UINT32] = AS_U32, [INT64] = AS_I64,       [UINT64] = AS_I64,
      [BOOLEAN] = AS_BYTE_FLAG, [TEXT] = AS_DOUBLE, [BINARY] = AS_DOUBLE, [CLOCK] = AS_BYTE_FLAG};
  return storages[type];
}

/* As in values.c, a pointer to values of any type is passed as a pointer to void. */
typedef int (*values_function)(void *, const uint32_t *, size_t, void *, size_t);
typedef int (*binaries_function)(void *, const uint32_t *, size_t, size_t *, const char **, size_t);
typedef int (*clocks_function)(void *, const uint32_t *, size_t, void *);

static int32_t get_texts(struct fmu *fmu, const struct call *call) {
  size_t count = (size_t)call->immediate;
  if (count > call->counts[1] / sizeof(uint32_t)) {
    return HOST_MALFORMED;
  }
  size_t room = count * (sizeof(char *) + sizeof(size_t));
  const char **texts = scratch(fmu, room + 1);
  if (texts == NULL) {
    return HOST_NO_MEMORY;
  }
  memset(texts, 0, room);
  size_t *sizes = NULL;
  int status;
  if (call->type == TEXT) {
    status = ((values_function)call->function)(fmu->component, call->operands[0], call->counts[0], texts, count);
  } else {
    sizes = (size_t *)(void *)(texts + count);
    status = ((binaries_function)call->function)(fmu->component, call->operands[0], call->counts[0], sizes, texts, count);
  }
  if (status > WARNING) {
    return status;
  }
  int32_t written = write_texts(texts, sizes, count, call->operands[1], call->counts[1]);
  return written == OK ? status : written;
}

static int32_t set_texts(struct fmu *fmu, const struct call *call) {
  const char **texts;
  size_t *sizes;
  size_t count = (size_t)call->immediate;
  int32_t status = read_texts(fmu, call->operands[1], call->counts[1], count, &texts, &sizes);
  if (status != OK) {
    return status;
  }
  if (call->type == TEXT) {
    return ((values_function)call->function)(fmu->component, call->operands[0], call->counts[0], texts, count);
  }
  return ((binaries_function)call->function)(fmu->component, call->operands[0], call->counts[0], sizes, texts, count);
}

/* Calls the function of the FMU with values as it stores them. */
static int32_t call_with_values(struct fmu *fmu, const struct call *call, void *values) {
  size_t count = call->counts[1];
  if (call->type == CLOCK) {
    if (count != call->counts[0]) {
      return HOST_MALFORMED;
    }
    return ((clocks_function)call->function)(fmu->component, call->operands[0], count, values);
  }
  return ((values_function)call->function)(fmu->component, call->operands[0], call->counts[0], values, count);
}

static int32_t get_values(struct fmu *fmu, const struct call *call) {
  if (call->type == TEXT || call->type == BINARY) {
    return get_texts(fmu, call);
  }
  enum storage storage = storage_of(call->type);
  if (storage == AS_DOUBLE || storage == AS_I64) {
    return call_with_values(fmu, call, call->operands[1]);
  }
  size_t count = call->counts[1];
  void *values = scratch(fmu, count * storage_size(storage));
  if (values == NULL) {
    return HOST_NO_MEMORY;
  }
  memset(values, 0, count * storage_size(storage));
  int32_t status = call_with_values(fmu, call, values);
  widen(storage, values, call->operands[1], count);
  return status;
}

static int32_t set_values(struct fmu *fmu, const struct call *call) {
  if (call->type == TEXT || call->type == BINARY) {
    return set_texts(fmu, call);
  }
  enum storage storage = storage_of(call->type);
  if (storage == AS_DOUBLE || storage == AS_I64) {
    return call_with_values(fmu, call, call->operands[1]);
  }
  size_t count = call->counts[1];
  void *values = scratch(fmu, count * storage_size(storage));
  if (values == NULL) {
    return HOST_NO_MEMORY;
  }
  return narrow(storage, call->operands[1], values, count) ? call_with_values(fmu, call, values) : HOST_MALFORMED;
}

static const char *const get_names[LAST_TYPE + 1] = {
    "GetFloat64", "GetFloat32", "GetInt8",  "GetUInt8",  "GetInt16",   "GetUInt16", "GetInt32",
    "GetUInt32",  "GetInt64",   "GetUInt64", "GetBoolean", "GetString", "GetBinary", "GetClock"};
static const char *const set_names[LAST_TYPE + 1] = {
    "SetFloat64", "SetFloat32", "SetInt8",  "SetUInt8",  "SetInt16",   "SetUInt16", "SetInt32",
    "SetUInt32",  "SetInt64",   "SetUInt64", "SetBoolean", "SetString", "SetBinary", "SetClock"};

const struct standard fmi3 = {
    .prefix = "fmi3",
    .entries =
        {
            [FILL] = {fill, NULL},
            [COPY] = {copy, NULL},
            [INSTANTIATE] = {instantiate, NULL}, /* a name for each interface: see name_of_function */
            [FREE_INSTANCE] = {free_instance, "FreeInstance"},
            [TERMINATE] = {call_plain, "Terminate"},
            [RESET] = {call_plain, "Reset"},
            [ENTER_INITIALIZATION] = {enter_initialization, "EnterInitializationMode"},
            [EXIT_INITIALIZATION] = {call_plain, "ExitInitializationMode"},
            [ENTER_CONFIGURATION] = {call_plain, "EnterConfigurationMode"},
            [EXIT_CONFIGURATION] = {call_plain, "ExitConfigurationMode"},
            [ENTER_EVENT_MODE] = {call_plain, "EnterEventMode"},
            [ENTER_CONTINUOUS_TIME_MODE] = {call_plain, "EnterContinuousTimeMode"},
            [ENTER_STEP_MODE] = {call_plain, "EnterStepMode"},
            [UPDATE_DISCRETE_STATES] = {update_discrete_states, "UpdateDiscreteStates"},
            [SET_DEBUG_LOGGING] = {set_debug_logging, "SetDebugLogging"},
            [SET_TIME] = {call_with_time, "SetTime"},
            [SET_CONTINUOUS_STATES] = {call_with_doubles, "SetContinuousStates"},
            [GET_CONTINUOUS_STATES] = {call_with_doubles, "GetContinuousStates"},
            [GET_DERIVATIVES] = {call_with_doubles, "GetContinuousStateDerivatives"},
            [GET_EVENT_INDICATORS] = {call_with_doubles, "GetEventIndicators"},
            [GET_NOMINALS] = {call_with_doubles, "GetNominalsOfContinuousStates"},
            [COMPLETED_STEP] = {completed_step, "CompletedIntegratorStep"},
            [COUNT_STATES] = {count_numbers, "GetNumberOfContinuousStates"},
            [COUNT_EVENT_INDICATORS] = {count_numbers, "GetNumberOfEventIndicators"},
            [GET_VALUES] = {get_values, NULL},
            [SET_VALUES] = {set_values, NULL},
            [DIRECTIONAL] = {sensitivities, "GetDirectionalDerivative"},
            [ADJOINT] = {sensitivities, "GetAdjointDerivative"},
            [DO_STEP] = {do_step, "DoStep"},
            [SAVE_STATE] = {save_state, "GetFMUState"},
            [RESTORE_STATE] = {restore_state, "SetFMUState"},
            [FREE_STATE] = {free_state, "FreeFMUState"},
        },
    .get_names = get_names,
    .set_names = set_names,
};
