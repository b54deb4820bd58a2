/* A file in the folder resources/ of the FMU, whose place the importer tells as a URI (FMI 2.0) or a path (FMI 3.0). */
#include <errno.h>
#include <stdint.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOUSER
#define NOGDI
#include <windows.h>
#endif

static int hexadecimal(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static int begins_with_file(const char *place)
{
    const char scheme[] = "file:";
    for (int k = 0; k < 5; k++) {
        if (place[k] != scheme[k] && place[k] != scheme[k] - 'a' + 'A') return 0;
    }
    return 1;
}

/* The path in "file:///folder%20name", "file://localhost/folder", "FILE:/folder"; the text itself if it is no URI. Some
 * importers write the path behind "file://" as it is: without ``decoded``, "%20" stays what it is. */
static void path_of(const char *place, char *path, int decoded)
{
    if (!begins_with_file(place)) {
        strcpy(path, place);
        return;
    }
    place += 5;
    if (strncmp(place, "//", 2) == 0) {
        const char *slash = strchr(place + 2, '/');
        int is_local = slash == place + 2 || strncmp(place + 2, "localhost/", 10) == 0;
        if (slash && is_local) place = slash; /* otherwise the name of another machine, which belongs to the path */
    }
#ifdef _WIN32
    if (place[0] == '/' && place[1] && place[2] == ':') place++; /* "/C:/folder" */
#endif
    while (*place) {
        int high = decoded && *place == '%' ? hexadecimal(place[1]) : -1;
        int low = high >= 0 ? hexadecimal(place[2]) : -1;
        *path++ = low >= 0 ? (char)(16 * high + low) : *place;
        place += low >= 0 ? 3 : 1;
    }
    *path = '\0';
}

static FILE *open_file(const char *path)
{
#ifdef _WIN32
    wchar_t wide[4096];
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, sizeof wide / sizeof wide[0])) return NULL;
    return _wfopen(wide, L"rb");
#else
    return fopen(path, "rb");
#endif
}

/* Open a file, or NULL with a message. */
static FILE *open_resource(const Instance *instance, const char *resources, const char *name, const char *function)
{
    const char *folder = resources ? resources : "";
    char *path = malloc(strlen(folder) + strlen(name) + 2);
    if (!path) return NULL;
    FILE *file = NULL;
    errno = 0;
    for (int decoded = 1; !file && decoded >= 0; decoded--) {
        path_of(folder, path, decoded);
        size_t length = strlen(path);
        if (length > 0 && path[length - 1] != '/' && path[length - 1] != '\\') path[length++] = '/';
        strcpy(path + length, name);
        file = open_file(path);
    }
    if (!file)
        say(instance, STATUS_ERROR,
            "%s: the file '%s' with the matrices of the model cannot be opened (%s). The importer says that the folder "
            "resources/ of this FMU is '%s'.", function, path, strerror(errno), folder);
    free(path);
    return file;
}
