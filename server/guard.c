#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The token ----------------------------------------------------------------------------------- */

/* What is wrong with the file itself, or NULL. */
static const char *file_fault(int file) {
    struct stat about;
    if (fstat(file, &about) != 0) return strerror(errno);
    if (!S_ISREG(about.st_mode)) return "it is not a plain file";
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        return "others may read or write it (chmod 600 makes it yours alone)";
    return NULL;
}

static const char *text_fault(const char *token, size_t length) {
    if (length < GUARD_TOKEN_LEAST) return "the token is shorter than 16 characters";
    if (length > GUARD_TOKEN_MOST) return "the token is longer than 4096 characters";
    for (size_t i = 0; i < length; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return "the token has characters that are not printable ASCII";
    return NULL;
}

char *guard_read_token(char message[GUARD_MESSAGE], const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *fault = file < 0 ? strerror(errno) : file_fault(file);
    char *token = fault ? NULL : calloc(1, GUARD_TOKEN_MOST + 16);
    if (!fault && !token) fault = "memory is missing";
    if (!fault) {
        ssize_t got = read(file, token, GUARD_TOKEN_MOST + 8);
        size_t length = got > 0 ? (size_t)got : 0;
        while (length > 0 && (token[length - 1] == '\n' || token[length - 1] == '\r')) length--;
        token[length] = '\0';
        fault = got < 0 ? strerror(errno) : text_fault(token, length);
    }
    if (file >= 0) close(file);
    if (!fault) return token;
    snprintf(message, GUARD_MESSAGE, "cannot use the token file %s: %s", path, fault);
    free(token);
    return NULL;
}

bool guard_has_token(const server_guard *guard, const char *authorization) {
    static const char scheme[] = "Bearer ";
    if (!guard->token) return true;
    bool right = authorization && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0;
    const char *given = right ? authorization + sizeof scheme - 1 : "";
    size_t length = strlen(guard->token), given_length = strlen(given);
    /* Every byte of the token is compared with one of what was given, whatever its length. */
    volatile unsigned char difference = length != given_length;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(guard->token[i] ^ given[given_length ? i % given_length : 0]);
    return difference == 0;
}

/* ---- The host ------------------------------------------------------------------------------------ */

enum { HOST = 256 };

/* Splits "name:port", "[::1]:port", "name"; port -1: none. */
static bool split_host(char name[HOST], int *port, const char *host) {
    const char *end = host[0] == '[' ? strchr(host, ']') : strchr(host, ':');
    if (host[0] == '[' && !end) return false;
    if (host[0] == '[') end++;
    size_t length = end ? (size_t)(end - host) : strlen(host);
    if (length == 0 || length >= HOST) return false;
    memcpy(name, host, length);
    name[length] = '\0';
    *port = -1;
    if (!end || !*end) return true;
    if (*end != ':' || end[1] < '0' || end[1] > '9') return false;
    char *rest;
    long number = strtol(end + 1, &rest, 10);
    if (*rest || number > 65535) return false;
    *port = (int)number;
    return true;
}

static bool is_numeric(const char *name) {
    unsigned char address[16];
    char inner[HOST];
    if (inet_pton(AF_INET, name, address) == 1) return true;
    size_t length = strlen(name);
    if (length < 3 || name[0] != '[') return false;
    memcpy(inner, name + 1, length - 2);
    inner[length - 2] = '\0';
    return inet_pton(AF_INET6, inner, address) == 1;
}

bool guard_knows_host(const server_guard *guard, const char *host) {
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    char name[HOST];
    int port;
    if (!host || !split_host(name, &port, host)) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcasecmp(name, own[i]) == 0) return port == guard->port || (port < 0 && guard->port == 80);
    if (!guard->token) return false;
    /* Behind a proxy the port is another one. */
    for (int i = 0; i < guard->allowed_count; i++)
        if (strcasecmp(name, guard->allowed[i]) == 0) return true;
    return is_numeric(name);
}
