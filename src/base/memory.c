/* How much memory there is for this process. Linux grants more than it has and ends a process that uses
 * it, so large arrays are compared with this before they are allocated. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"

/* The start of a small file of the system, terminated; false where it cannot be read. */
static bool read_text(char *text, size_t size, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t got = read(file, text, size - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* The number behind `key` at the start of a line, times `unit`; 0 where there is none. */
static int64_t field(const char *text, const char *key, int64_t unit) {
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, length) == 0) return strtoll(line + length, NULL, 10) * unit;
    }
    return 0;
}

/* A limit on memory and how much of it is used. */
typedef struct memory_limit {
    int64_t available, total;
} memory_limit;

static void narrow(memory_limit *limit, int64_t total, int64_t used) {
    int64_t available = total > used ? total - used : 0;
    if (total < limit->total) limit->total = total;
    if (available < limit->available) limit->available = available;
}

static bool machine_memory(memory_limit *limit) {
    char text[4096];
    if (!read_text(text, sizeof text, "/proc/meminfo")) return false;
    limit->total = field(text, "MemTotal:", 1024) + field(text, "SwapTotal:", 1024);
    limit->available = field(text, "MemAvailable:", 1024) + field(text, "SwapFree:", 1024);
    return limit->total > 0 && limit->available > 0;
}

/* The limit of one control group; cached pages of files count as used there, but are given back. */
static void group_memory(memory_limit *limit, const char *folder, const char *most, const char *used) {
    char path[PATH_MAX + 64], text[8192], number[64];
    int64_t maximum, current;
    snprintf(path, sizeof path, "%s/%s", folder, most);
    /* "max" is no limit, nor is a number near the largest there is. */
    if (!read_text(number, sizeof number, path) || (maximum = strtoll(number, NULL, 10)) <= 0) return;
    snprintf(path, sizeof path, "%s/%s", folder, used);
    if (!read_text(number, sizeof number, path)) return;
    current = strtoll(number, NULL, 10);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (read_text(text, sizeof text, path))
        current -= field(text, "inactive_file ", 1) + field(text, "active_file ", 1);
    narrow(limit, maximum, current > 0 ? current : 0);
}

/* The limits of a group and of all above it. */
static void groups_memory(memory_limit *limit, const char *root, char *group, const char *most,
                          const char *used) {
    for (;;) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s%s", root, group);
        group_memory(limit, folder, most, used);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup are "NUMBER:CONTROLLERS:GROUP"; version 2 has no controllers. */
static void control_groups(memory_limit *limit) {
    char text[4096], *rest = text;
    if (!read_text(text, sizeof text, "/proc/self/cgroup")) return;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");
        if (!number || !controllers || !line) continue;
        if (!*controllers)
            groups_memory(limit, "/sys/fs/cgroup", line, "memory.max", "memory.current");
        else if (strcmp(controllers, "memory") == 0)
            groups_memory(limit, "/sys/fs/cgroup/memory", line, "memory.limit_in_bytes",
                          "memory.usage_in_bytes");
    }
}

static void address_space(memory_limit *limit) {
    struct rlimit most;
    char text[128];
    if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur >= INT64_MAX ||
        !read_text(text, sizeof text, "/proc/self/statm"))
        return;
    narrow(limit, (int64_t)most.rlim_cur, strtoll(text, NULL, 10) * sysconf(_SC_PAGESIZE));
}

bool vlp_memory_available(int64_t *available, int64_t *total) {
    memory_limit limit;
    *available = *total = 0;
    if (!machine_memory(&limit)) return false;
    control_groups(&limit);
    address_space(&limit);
    *available = limit.available;
    *total = limit.total;
    return true;
}
