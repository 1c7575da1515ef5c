/* The settings that determine a run's results, as text and as a digest, which its weights carry.
 *
 * Equal digests mean equal settings. Different ones need not mean different settings: a later version
 * may have renamed a value, or have a setting that was not there yet. So the text decides: it is read as
 * a recipe would be, over the defaults, and compared value by value. */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "learn/settings.h"

void vlp_settings_describe(char text[VLP_SETTINGS_TEXT], char digest[33], const vlp_settings *settings) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    int used = 0;
    for (int32_t i = 0; i < count; i++) {
        if (table[i].adjustable) continue;
        char value[64];
        vlp_settings_get(value, settings, &table[i]);
        used += snprintf(text + used, VLP_SETTINGS_TEXT - (size_t)used, "%s%s=%s", used ? " " : "",
                         table[i].name, value);
        assert(used < VLP_SETTINGS_TEXT);
    }
    XXH128_hash_t hash = XXH3_128bits(text, (size_t)used);
    snprintf(digest, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* Reads "key=value key=value ..." over the defaults. */
static vlp_status read_text(vlp_settings *out, const char *text, const char *where) {
    vlp_settings_default(out);
    while (*text) {
        size_t length = strcspn(text, " ");
        const char *equals = memchr(text, '=', length);
        char key[64] = "", value[64] = "";
        size_t name = equals ? (size_t)(equals - text) : 0;
        if (!equals || name >= sizeof key || length - name - 1 >= sizeof value)
            return vlp_fail(VLP_ERROR_FORMAT, "%s: '%.*s' is not a setting", where,
                            (int)(length < 100 ? length : 100), text);
        memcpy(key, text, name);
        memcpy(value, equals + 1, length - name - 1);
        if (vlp_settings_set(out, key, value, where) != VLP_OK) return VLP_ERROR_FORMAT;
        text += length;
        text += strspn(text, " ");
    }
    return VLP_OK;
}

vlp_status vlp_settings_verify(const vlp_settings *settings, const char *text, const char *digest,
                               const char *where) {
    char own_text[VLP_SETTINGS_TEXT], own_digest[33], message[512] = "";
    vlp_settings_describe(own_text, own_digest, settings);
    if (strcmp(own_digest, digest) == 0) return VLP_OK;
    vlp_settings trained;
    VLP_TRY(read_text(&trained, text, where));
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        char now[64], then[64];
        if (table[i].adjustable) continue;
        vlp_settings_get(now, settings, &table[i]);
        vlp_settings_get(then, &trained, &table[i]);
        if (strcmp(now, then) == 0) continue;
        size_t used = strlen(message);
        snprintf(message + used, sizeof message - used, "%s%s = %s, not %s", used ? "; " : "",
                 table[i].name, now, then);
    }
    return *message ? vlp_fail(VLP_ERROR_FORMAT, "%s: %s", where, message) : VLP_OK;
}
