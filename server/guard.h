/* Who may ask: the token, and the names that this server has. */
#ifndef VLP_SERVER_GUARD_H
#define VLP_SERVER_GUARD_H

#include "server.h"

typedef struct server_guard {
    char *token; /* NULL: none is needed */
    int port;
    const char *const *allowed; /* names besides those of the loopback interface; borrowed */
    int allowed_count;
} server_guard;

/* Reads the token of a file that others may not read. NULL: it failed, and `message` says why. */
enum { GUARD_MESSAGE = 512, GUARD_TOKEN_LEAST = 16, GUARD_TOKEN_MOST = 4096 };
char *guard_read_token(char message[GUARD_MESSAGE], const char *path);

/* Whether the Host header (NULL: none) names this server. A page of another site that has its name
 * resolve to this machine (DNS rebinding) sends its own name. With a token, numeric addresses are
 * allowed as well. */
bool guard_knows_host(const server_guard *guard, const char *host);
/* Whether the Authorization header (NULL: none) has the token. Takes the same time whatever is wrong. */
bool guard_has_token(const server_guard *guard, const char *authorization);

#endif
