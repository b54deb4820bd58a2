/*
 * The FMU host: loads one FMU and answers messages; see protocol.h. It knows nothing of Python.
 *
 *   host REQUESTS ANSWERS ARENA SIZE [OPTIONS]    descriptors of two pipes and of the arena (on Windows two handles and
 *                                                 the name of the arena; under wine `stdin`, `stdout` and a file), its
 *                                                 size in bytes, options of sandbox.h
 *   host --run [OPTIONS] -- COMMAND...            runs a program in the sandbox
 */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copies.h"
#include "fmi.h"
#include "messages.h"
#include "platform.h"
#include "protocol.h"
#include "sandbox.h"

_Static_assert(sizeof(struct message) == 32, "no padding");
_Static_assert(sizeof(struct answer) == 32, "no padding");
_Static_assert(sizeof(struct record) == 8, "no padding");
_Static_assert(sizeof(struct instruction) == 112, "no padding");
_Static_assert(sizeof(struct progress) == 24 + LAST_TEXT, "no padding");

enum { EXIT_USAGE = 64, EXIT_SANDBOX = 65, SHORT_MESSAGE = 1 << 16 };

struct program {
  struct call *calls;
  uint32_t count;
  uint64_t repetitions; /* for more of them an operand would be outside the arena */
};

static char *arena;
static size_t arena_size;
static struct fmu fmu;
static uint32_t sequence; /* number of the next answer */
static struct program programs[MAX_PROGRAMS];

/* What the operands of an operation are: size of an element (0: no operand), and their number (0: any). */
struct form {
  uint8_t size, count;
};

enum { VALUES = 255 }; /* the size is that of the values of the instruction's type */

static const struct form forms[LAST_OPERATION + 1][OPERANDS] = {
    [FILL] = {{8, 0}},
    [COPY] = {{8, 0}, {8, 0}},
    [INSTANTIATE] = {{1, 0}, {1, 0}, {1, 0}},
    [SETUP_EXPERIMENT] = {{8, 3}},
    [ENTER_INITIALIZATION] = {{8, 3}, {8, 6}},
    [UPDATE_DISCRETE_STATES] = {{8, 6}},
    [SET_DEBUG_LOGGING] = {{1, 0}},
    [SET_TIME] = {{8, 1}},
    [SET_CONTINUOUS_STATES] = {{8, 0}},
    [GET_CONTINUOUS_STATES] = {{8, 0}},
    [GET_DERIVATIVES] = {{8, 0}},
    [GET_EVENT_INDICATORS] = {{8, 0}},
    [GET_NOMINALS] = {{8, 0}},
    [GET_STATE_REFERENCES] = {{4, 0}},
    [COMPLETED_STEP] = {{8, 2}},
    [COUNT_STATES] = {{8, 1}},
    [COUNT_EVENT_INDICATORS] = {{8, 1}},
    [GET_VALUES] = {{4, 0}, {VALUES, 0}},
    [SET_VALUES] = {{4, 0}, {VALUES, 0}},
    [DIRECTIONAL] = {{4, 0}, {4, 0}, {8, 0}, {8, 0}},
    [ADJOINT] = {{4, 0}, {4, 0}, {8, 0}, {8, 0}},
    [DO_STEP] = {{8, 1}, {8, 1}, {8, 4}},
};

/* Checks an operand; `repetitions` becomes smaller where it leaves the arena after fewer of them. */
static bool take_operand(const struct operand *operand, struct form form, uint32_t type, struct call *call, int position,
                         uint64_t *repetitions) {
  size_t size = form.size;
  if (size == VALUES) {
    size = type == TEXT || type == BINARY ? 1 : 8;
  }
  if (size == 0 || operand->count > arena_size / size || (form.count != 0 && operand->count != form.count)) {
    return size == 0;
  }
  size_t bytes = (size_t)operand->count * size;
  if (operand->offset > arena_size - bytes || operand->offset % size != 0 || operand->stride % size != 0) {
    return false;
  }
  size_t room = arena_size - bytes - (size_t)operand->offset;
  if (operand->stride > 0 && room / operand->stride + 1 < *repetitions) {
    *repetitions = room / operand->stride + 1;
  }
  call->bases[position] = arena + operand->offset;
  call->operands[position] = call->bases[position];
  call->counts[position] = (size_t)operand->count;
  call->strides[position] = (size_t)operand->stride;
  return true;
}

/* The name of the function that an instruction calls, without its prefix; NULL if there is none in this version. */
static const char *name_of_function(const struct instruction *instruction) {
  switch (instruction->operation) {
    case GET_VALUES:
      return fmu.standard->get_names[instruction->type];
    case SET_VALUES:
      return fmu.standard->set_names[instruction->type];
    case INSTANTIATE:
      if (fmu.standard == &fmi3) {
        return fmu.interface == CO_SIMULATION ? "InstantiateCoSimulation" : "InstantiateModelExchange";
      }
      break;
    default:
      break;
  }
  return fmu.standard->entries[instruction->operation].name;
}

static int32_t look_up(const char *name, function *found) {
  char symbol[512];
  int length = snprintf(symbol, sizeof symbol, "%s%s%s", fmu.prefix, fmu.standard->prefix, name);
  *found = NULL;
  if (length > 0 && (size_t)length < sizeof symbol) {
    *found = find_function(fmu.library, symbol);
  }
  if (*found == NULL) {
    log_record(HOST_NO_FUNCTION, NULL, symbol);
    return HOST_NO_FUNCTION;
  }
  return OK;
}

static int32_t take_instruction(const struct instruction *instruction, struct call *call, uint64_t *repetitions) {
  memset(call, 0, sizeof *call);
  if (instruction->operation > LAST_OPERATION || instruction->type > LAST_TYPE || fmu.standard == NULL) {
    return HOST_MALFORMED;
  }
  call->handle = fmu.standard->entries[instruction->operation].handle;
  call->immediate = instruction->immediate;
  call->type = instruction->type;
  if (call->handle == NULL) {
    return HOST_MALFORMED;
  }
  for (int i = 0; i < OPERANDS; i++) {
    call->bases[i] = arena;
    struct form form = forms[instruction->operation][i];
    if (!take_operand(&instruction->operands[i], form, instruction->type, call, i, repetitions)) {
      return HOST_MALFORMED;
    }
  }
  if (instruction->operation == COPY && call->counts[0] != call->counts[1]) {
    return HOST_MALFORMED;
  }
  if (call->handle == fill || call->handle == copy) {
    return OK;
  }
  const char *name = name_of_function(instruction);
  return name == NULL ? HOST_MALFORMED : look_up(name, &call->function);
}

/* Makes a program of instructions; `position` is that of the instruction that cannot be taken. */
static int32_t make_program(const char *bytes, size_t size, struct program *program, uint32_t *position) {
  memset(program, 0, sizeof *program);
  program->repetitions = UINT64_MAX;
  size_t count = size / sizeof(struct instruction);
  if (size % sizeof(struct instruction) != 0) {
    return HOST_MALFORMED;
  }
  program->calls = malloc((count + 1) * sizeof(struct call));
  if (program->calls == NULL) {
    return HOST_NO_MEMORY;
  }
  for (size_t i = 0; i < count; i++) {
    struct instruction instruction;
    memcpy(&instruction, bytes + i * sizeof instruction, sizeof instruction);
    int32_t status = take_instruction(&instruction, &program->calls[i], &program->repetitions);
    if (status != OK) {
      *position = (uint32_t)i;
      free(program->calls);
      memset(program, 0, sizeof *program);
      return status;
    }
  }
  program->count = (uint32_t)count;
  return OK;
}

static bool needs_instance(const struct call *call) {
  return call->handle != fill && call->handle != copy;
}

/* Whether there is an instance where the call needs one, and none where it would make one. */
static bool finds_instance(const struct call *call) {
  if (call->handle == fmu.standard->entries[INSTANTIATE].handle) {
    return fmu.component == NULL;
  }
  return fmu.component != NULL || !needs_instance(call);
}

static int32_t run_program(const struct program *program, uint64_t first, uint64_t count, struct answer *answer) {
  volatile struct progress *progress = (volatile struct progress *)(void *)arena;
  if (count > program->repetitions || first > program->repetitions - count) {
    return HOST_MALFORMED;
  }
  int32_t status = OK;
  progress->last_text[0] = 0;
  progress->running = 1;
  for (uint64_t r = first; r < first + count; r++) {
    progress->repetition = r;
    for (uint32_t i = 0; i < program->count; i++) {
      struct call *call = &program->calls[i];
      for (int k = 0; k < OPERANDS; k++) {
        call->operands[k] = call->bases[k] + (size_t)r * call->strides[k];
      }
      progress->instruction = i;
      status = finds_instance(call) ? call->handle(&fmu, call) : HOST_NO_INSTANCE;
      if (status != OK && status != WARNING) {
        progress->running = 0;
        answer->instruction = i;
        answer->repetition = r;
        return status;
      }
    }
  }
  progress->running = 0;
  answer->instruction = program->count;
  answer->repetition = first + count;
  return OK;
}

static int32_t open_fmu(const struct message *message, const char *bytes, size_t size) {
  const char *end = memchr(bytes, 0, size);
  if (fmu.library != NULL || end == NULL || size < 2 || bytes[size - 1] != 0 || end == bytes + size - 1) {
    return HOST_MALFORMED;
  }
  if (message->b > CO_SIMULATION || message->a < 1 || message->a > 3) {
    return HOST_MALFORMED;
  }
  char reason[1000];
  fmu.prefix = malloc(size);
  if (fmu.prefix == NULL) {
    return HOST_NO_MEMORY;
  }
  strcpy(fmu.prefix, end + 1);
  fmu.interface = message->b == CO_SIMULATION ? CO_SIMULATION : MODEL_EXCHANGE;
  fmu.library = open_library(bytes, reason, sizeof reason);
  if (fmu.library == NULL) {
    log_record(HOST_NOT_LOADED, NULL, reason);
    free(fmu.prefix);
    return HOST_NOT_LOADED;
  }
  if (message->a == 1) {
    fmu.standard = fmu.interface == CO_SIMULATION ? &fmi1_co_simulation : &fmi1_model_exchange;
  } else {
    fmu.standard = message->a == 2 ? &fmi2 : &fmi3;
  }
  return OK;
}

static int32_t define(const struct message *message, const char *bytes, struct answer *answer) {
  if (message->a >= MAX_PROGRAMS) {
    return HOST_MALFORMED;
  }
  struct program program;
  int32_t status = make_program(bytes, message->size, &program, &answer->instruction);
  if (status == OK) {
    free(programs[message->a].calls);
    programs[message->a] = program;
  }
  return status;
}

static int32_t run(const struct message *message, struct answer *answer) {
  if (message->a >= MAX_PROGRAMS || programs[message->a].calls == NULL) {
    return HOST_MALFORMED;
  }
  return run_program(&programs[message->a], message->b, message->c, answer);
}

static int32_t execute(const struct message *message, const char *bytes, struct answer *answer) {
  struct program program;
  int32_t status = make_program(bytes, message->size, &program, &answer->instruction);
  if (status == OK) {
    status = run_program(&program, 0, 1, answer);
    free(program.calls);
  }
  return status;
}

static int32_t handle(const struct message *message, const char *bytes, struct answer *answer) {
  switch (message->kind) {
    case OPEN:
      return open_fmu(message, bytes, message->size);
    case DEFINE:
      return define(message, bytes, answer);
    case RUN:
      return run(message, answer);
    case EXECUTE:
      return execute(message, bytes, answer);
    case COPY_HOST:
      return copy_host(message->a, &sequence);
    default:
      return HOST_MALFORMED;
  }
}

static bool send(struct answer *answer, const char *bytes) {
  static char buffer[sizeof(struct answer) + MAX_RECORD_BYTES];
  answer->sequence = sequence++;
  size_t size = answer->size;
  if (bytes == NULL) {
    size = take_records(buffer + sizeof *answer, MAX_RECORD_BYTES, &answer->dropped);
    answer->size = (uint32_t)size;
  } else {
    memcpy(buffer + sizeof *answer, bytes, size);
  }
  memcpy(buffer, answer, sizeof *answer);
  return write_bytes(buffer, sizeof *answer + size);
}

/* Answers messages until the client closes its end or asks for the end; false for a message that cannot be read. */
static bool serve(void) {
  static alignas(16) char short_message[SHORT_MESSAGE];
  struct message message;
  while (read_bytes(&message, sizeof message)) {
    if (message.kind == QUIT) {
      return true;
    }
    if (message.size > MAX_MESSAGE) {
      return false; /* nothing after it can be understood */
    }
    char *bytes = message.size <= sizeof short_message ? short_message : malloc(message.size);
    if (bytes == NULL || !read_bytes(bytes, message.size)) {
      return false;
    }
    struct answer answer = {0, 0, 0, 0, 0, 0, 0};
    answer.status = handle(&message, bytes, &answer);
    fflush(stdout); /* what the FMU prints belongs before the answer */
    if (bytes != short_message) {
      free(bytes);
    }
    if (!send(&answer, NULL)) {
      return true;
    }
  }
  return true;
}

/* The last answer: without records, since the code that has crashed may have been writing one. */
static void report_crash(uint32_t code) {
  struct answer answer = {0, HOST_CRASHED, 0, 0, code, 0, 0};
  send(&answer, "");
}

static int report_usage(const char *problem) {
  fprintf(stderr, "fmilin's FMU host is started by fmilin, not by hand: %s\n", problem);
  return EXIT_USAGE;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--run") == 0) {
    return run_command(argc, argv);
  }
  if (argc < 5) {
    return report_usage("two pipes and an arena are missing.");
  }
  struct sandbox_limits limits;
  set_default_limits(&limits);
  for (int position = 5; position < argc;) {
    char problem[256];
    int found = read_sandbox_option(&limits, argc, argv, &position, problem, sizeof problem);
    if (found <= 0) {
      return report_usage(found < 0 ? problem : argv[position]);
    }
  }
  arena_size = (size_t)strtoull(argv[4], NULL, 10);
  if (arena_size < sizeof(struct progress) || arena_size > SIZE_MAX / 2) {
    return report_usage("the arena has no size.");
  }
  arena = open_channel(argv[1], argv[2], argv[3], arena_size, report_crash);
  if (arena == NULL) {
    return report_usage("the arena or a pipe cannot be opened.");
  }
  repeat_last_text((struct progress *)(void *)arena);
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  static struct sandbox_report report;
  static char text[1 << 14];
  if (apply_sandbox(&limits, &report) != 0) {
    write_sandbox_report(&report, text, sizeof text);
    fprintf(stderr, "A protection that was asked for is missing here:\n%s", text);
    return EXIT_SANDBOX;
  }
  size_t size = write_sandbox_report(&report, text, sizeof text);
  struct answer ready = {0, PROTOCOL_VERSION, 0, (uint32_t)(size < sizeof text ? size : sizeof text - 1), 0, 0, 0};
  if (!send(&ready, text)) {
    return EXIT_FAILURE;
  }
  if (!serve()) {
    return EXIT_FAILURE;
  }
  if (fmu.library != NULL) {
    close_library(fmu.library);
  }
  return EXIT_SUCCESS;
}
