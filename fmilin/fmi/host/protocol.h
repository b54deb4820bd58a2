/*
 * The protocol between fmilin and its FMU host, the process in which the code of one FMU runs.
 *
 * A message is a program of FMI calls over one shared arena. The arena is memory that both processes map; the numbers of
 * the client lie there, and calls read and write them in place. Messages and answers travel over two pipes, in the byte
 * order of the machine. Structures have no padding.
 *
 * The host begins with an answer: `status` is PROTOCOL_VERSION, and the bytes are the sandbox's report (sandbox.h). After
 * that it sends one answer to each message.
 *
 * Messages (struct message, then `size` bytes):
 *
 *   OPEN     a: version of FMI (1, 2, 3), b: interface (enum interface); bytes: path of the library, prefix of its
 *            functions (FMI 1.0 only), each ended by a zero byte. Loads the library.
 *   DEFINE   a: number of the program, below MAX_PROGRAMS; bytes: its instructions (struct instruction). A program
 *            with this number is replaced. All offsets and counts are checked, and all functions are looked up.
 *   RUN      a: number of the program, b: first repetition, c: number of repetitions. In repetition r each operand is
 *            at offset + r * stride. The program ends at the first status that is worse than a warning.
 *   EXECUTE  bytes: instructions, which run once as repetition 0 and are forgotten.
 *   COPY_HOST a: enum copy_request. MAKE_COPY: the host makes a copy of itself, which waits, and the host goes on; a former
 *            copy ends. RETURN_TO_COPY: the host ends, and its copy answers in its place, as it was made, with a copy of
 *            itself that waits as before. DROP_COPY: the copy ends. HOST_NOT_COPIED is no error: all goes on as before,
 *            but there is no copy. Programs are those of the time at which the copy was made, the arena is as it is.
 *   QUIT     The host exits, without an answer. It also exits when the client closes its end.
 *
 * An answer (struct answer, then `size` bytes of log records) says where the program ended: the status (of FMI, or of
 * enum host_status, which are negative), the instruction and the repetition. Without an error these are the numbers of
 * instructions and repetitions. A log record (struct record, then category and text) is a message of the FMU, or of the
 * host about itself (status negative). Of many only the newest are kept.
 *
 * The arena begins with struct progress. The host writes it before each instruction, so that the client can say in
 * which function the FMU has crashed or does not return, and what the FMU said last in that program.
 *
 * The client believes nothing of this but numbers in expected places: code of the FMU can write to all of it.
 */
#ifndef FMILIN_PROTOCOL_H
#define FMILIN_PROTOCOL_H

#include <stdint.h>

enum { PROTOCOL_VERSION = 3, LAST_TEXT = 1000 };
enum { OPERANDS = 4, MAX_PROGRAMS = 65536, MAX_MESSAGE = 1 << 26, MAX_SAVED_STATES = 64 };

struct message {
  uint32_t kind; /* enum message_kind */
  uint32_t size; /* bytes that follow */
  uint64_t a, b, c;
};

enum message_kind { OPEN = 1, DEFINE = 2, RUN = 3, EXECUTE = 4, QUIT = 5, COPY_HOST = 6 };

enum copy_request { MAKE_COPY = 0, RETURN_TO_COPY = 1, DROP_COPY = 2 };

struct answer {
  uint32_t sequence; /* number of the answer, from 0 on */
  int32_t status;
  uint32_t instruction;
  uint32_t size; /* bytes that follow */
  uint64_t repetition;
  uint32_t dropped; /* log records that are lost because newer ones took their room */
  uint32_t reserved;
};

struct record {
  int32_t status;
  uint16_t category_size;
  uint16_t text_size;
};

struct progress {
  uint64_t instruction;
  uint64_t repetition;
  uint64_t running; /* 1 in a function of the FMU, else 0 */
  char last_text[LAST_TEXT]; /* the last message of the FMU, ended by a zero byte; empty when a program begins */
};

enum host_status {
  HOST_MALFORMED = -1,   /* a message, an offset or a count is not possible */
  HOST_NOT_LOADED = -2,  /* the library cannot be opened; a record says why */
  HOST_NO_FUNCTION = -3, /* the library lacks a function; a record names it */
  HOST_NO_INSTANCE = -4, /* there is no instance, or instantiation has failed */
  HOST_NO_MEMORY = -5,
  HOST_STOPPED = -6, /* a communication step ended early, or asks to end the simulation */
  HOST_TOO_LONG = -7,  /* strings do not fit the place for them */
  HOST_NOT_COPIED = -8, /* the host has threads or processes, or is not allowed a copy, or the copy has ended */
  HOST_CRASHED = -9     /* under wine, whose exit statuses have 8 bits: `repetition` is the code of the exception */
};

enum interface { MODEL_EXCHANGE = 0, CO_SIMULATION = 1 };

struct operand {
  uint64_t offset; /* bytes from the beginning of the arena */
  uint64_t count;  /* elements */
  uint64_t stride; /* bytes from one repetition to the next */
};

struct instruction {
  uint32_t operation; /* enum operation */
  uint32_t type;      /* enum value_type, or as an operation says */
  uint64_t immediate; /* as an operation says */
  struct operand operands[OPERANDS];
};

/* Operands are doubles where nothing else is said. A bit of the immediate value is written as bit 0, bit 1, ... */
enum operation {
  FILL = 1, /* fills (n) with the double of which the immediate value is the bits; no call */
  COPY = 2, /* copies the first operand (n) to the second (n); no call */

  INSTANTIATE = 10,          /* bytes: name, token, resources; bit 0 visible, bit 1 logs, bit 2 event mode, bit 3 may
                                return early */
  FREE_INSTANCE = 11,       /* without operands */
  TERMINATE = 12,           /* without operands */
  RESET = 13,               /* without operands */
  SETUP_EXPERIMENT = 14,    /* (3): tolerance, start, stop; bit 0 with tolerance, bit 1 with stop. FMI 2.0 */
  ENTER_INITIALIZATION = 15, /* as before; (6) events as of UPDATE_DISCRETE_STATES, for FMI 1.0 */
  EXIT_INITIALIZATION = 16,
  ENTER_CONFIGURATION = 17,
  EXIT_CONFIGURATION = 18,
  ENTER_EVENT_MODE = 19,
  ENTER_CONTINUOUS_TIME_MODE = 20,
  ENTER_STEP_MODE = 21,
  UPDATE_DISCRETE_STATES = 22, /* (6) written: again, terminate, nominals changed, values changed, scheduled, time */
  SET_DEBUG_LOGGING = 23,      /* bytes: categories, each with a final zero; bit 0 on */

  SET_TIME = 30,              /* (1) */
  SET_CONTINUOUS_STATES = 31, /* (n) */
  GET_CONTINUOUS_STATES = 32, /* (n) */
  GET_DERIVATIVES = 33,       /* (n) */
  GET_EVENT_INDICATORS = 34,  /* (n) */
  GET_NOMINALS = 35,          /* (n) */
  GET_STATE_REFERENCES = 36,  /* references (n). FMI 1.0 */
  COMPLETED_STEP = 37,        /* (2) written: wants an event, terminates; bit 0 no step is taken back */
  COUNT_STATES = 38,          /* integer (1). FMI 3.0 */
  COUNT_EVENT_INDICATORS = 39, /* integer (1). FMI 3.0 */

  GET_VALUES = 40,  /* references (n), values of the type (m); immediate value: number of values, of texts and binaries */
  SET_VALUES = 41,  /* the same */
  DIRECTIONAL = 42, /* references of unknowns, references of knowns, seed, sensitivities */
  ADJOINT = 43,     /* references of unknowns, references of knowns, seed, sensitivities */

  DO_STEP = 50,       /* (1) time, (1) step, (4) written: event, terminates, returned early, time; bit 0 as above */
  SAVE_STATE = 51,    /* immediate value: number of the saved state */
  RESTORE_STATE = 52, /* the same */
  FREE_STATE = 53,    /* the same */
  LAST_OPERATION = 53
};

/* Values are doubles for floats, 64-bit integers for integers, Booleans and clocks (unsigned ones by their bits). Texts
   and binaries are bytes: for each its length as uint32_t, then its bytes, without padding. */
enum value_type {
  FLOAT64 = 0,
  FLOAT32 = 1,
  INT8 = 2,
  UINT8 = 3,
  INT16 = 4,
  UINT16 = 5,
  INT32 = 6,
  UINT32 = 7,
  INT64 = 8,
  UINT64 = 9,
  BOOLEAN = 10,
  TEXT = 11,
  BINARY = 12,
  CLOCK = 13,
  LAST_TYPE = 13
};

#endif
