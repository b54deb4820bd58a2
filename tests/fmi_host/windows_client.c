/*
 * A client of the host on Windows: starts it, loads a library of FMI 3.0, sets four integers of 8 bits and reads them.
 *
 *   windows_client HOST LIBRARY
 *
 * Prints what the host reports about its sandbox, then the statuses of all answers, then the integers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* windows.h has other meanings for these names. */
#undef interface
#define INT8 TYPE_INT8
#define UINT8 TYPE_UINT8
#define INT16 TYPE_INT16
#define UINT16 TYPE_UINT16
#define INT32 TYPE_INT32
#define UINT32 TYPE_UINT32
#define INT64 TYPE_INT64
#define UINT64 TYPE_UINT64
#define BOOLEAN TYPE_BOOLEAN
#include "protocol.h"

enum { ARENA_SIZE = 1 << 16, REFERENCES = 512, VALUES = 640, ANSWERS = 768, COUNT = 4 };

static HANDLE requests, answers;

static void fail(const char *what) {
  fprintf(stderr, "%s: error %lu\n", what, (unsigned long)GetLastError());
  exit(1);
}

static int32_t receive(void) {
  static char content[1 << 18];
  struct answer answer;
  DWORD count;
  if (!ReadFile(answers, &answer, sizeof answer, &count, NULL) || count != sizeof answer) {
    fail("no answer");
  }
  for (uint32_t size = 0; size < answer.size; size += count) {
    if (!ReadFile(answers, content, answer.size - size, &count, NULL)) {
      fail("half an answer");
    }
    fwrite(content, 1, count, stdout);
  }
  return answer.status;
}

static int32_t ask(uint32_t kind, const void *content, size_t size, uint64_t a) {
  struct message message = {kind, (uint32_t)size, a, 0, 0};
  DWORD count;
  if (!WriteFile(requests, &message, sizeof message, &count, NULL) ||
      (size > 0 && !WriteFile(requests, content, (DWORD)size, &count, NULL))) {
    fail("request");
  }
  return receive();
}

static int32_t execute(uint32_t operation, uint32_t type, const struct operand *operands, size_t count) {
  struct instruction instruction = {operation, type, 0, {{0, 0, 0}}};
  memcpy(instruction.operands, operands, count * sizeof *operands);
  return ask(EXECUTE, &instruction, sizeof instruction, 0);
}

static void start_host(const char *program, const char *arena_name) {
  SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
  STARTUPINFOA start = {.cb = sizeof start};
  PROCESS_INFORMATION process;
  HANDLE their_requests = NULL, their_answers = NULL;
  char command[1024];
  if (!CreatePipe(&their_requests, &requests, &inherited, 0) || !CreatePipe(&answers, &their_answers, &inherited, 0)) {
    fail("pipe");
  }
  SetHandleInformation(requests, HANDLE_FLAG_INHERIT, 0);
  SetHandleInformation(answers, HANDLE_FLAG_INHERIT, 0);
  snprintf(command, sizeof command, "\"%s\" %llu %llu %s %d --memory 1000000000", program,
           (unsigned long long)(uintptr_t)their_requests, (unsigned long long)(uintptr_t)their_answers, arena_name,
           ARENA_SIZE);
  if (!CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) {
    fail("host");
  }
  CloseHandle(their_requests);
  CloseHandle(their_answers);
}

int main(int argc, char **argv) {
  static const char NAME[] = "Local\\fmilin-test";
  if (argc != 3) {
    return 2;
  }
  HANDLE mapping = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, ARENA_SIZE, NAME);
  char *arena = mapping ? MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, ARENA_SIZE) : NULL;
  if (arena == NULL) {
    fail("arena");
  }
  start_host(argv[1], NAME);
  int32_t version = receive();

  char content[1024] = "";
  size_t length = strlen(argv[2]) + 2; /* with an empty prefix */
  memcpy(content, argv[2], length - 1);
  int32_t opened = ask(OPEN, content, length, 3);

  const struct operand texts[3] = {{64, 1, 0}, {64, 1, 0}, {64, 1, 0}}; /* empty ones */
  int32_t instantiated = execute(INSTANTIATE, 0, texts, 3);

  uint32_t *references = (uint32_t *)(void *)(arena + REFERENCES);
  int64_t *values = (int64_t *)(void *)(arena + VALUES), *read = (int64_t *)(void *)(arena + ANSWERS);
  const int64_t expected[COUNT] = {-128, 127, 1, 0};
  for (int i = 0; i < COUNT; i++) {
    references[i] = (uint32_t)i;
    values[i] = expected[i];
    read[i] = 99;
  }
  struct operand operands[2] = {{REFERENCES, COUNT, 0}, {VALUES, COUNT, 0}};
  int32_t set = execute(SET_VALUES, INT8, operands, 2);
  operands[1].offset = ANSWERS;
  int32_t got = execute(GET_VALUES, INT8, operands, 2);

  operands[1].offset = ARENA_SIZE - 8;
  int32_t outside = execute(GET_VALUES, INT8, operands, 2);
  printf("\nversion %d, opened %d, instantiated %d, set %d, got %d, outside %d, values", version, opened, instantiated,
         set, got, outside);
  for (int i = 0; i < COUNT; i++) {
    printf(" %lld", (long long)read[i]);
  }
  printf("\n");
  return 0;
}
