/* Numbers as text with a decimal point, whatever locale the program around the library has chosen. */
#ifndef VLP_BASE_PLAIN_LOCALE_H
#define VLP_BASE_PLAIN_LOCALE_H

#include <locale.h>

typedef struct vlp_plain_locale {
    locale_t plain, before;
} vlp_plain_locale;

/* For this thread, until vlp_plain_locale_end. */
static inline vlp_plain_locale vlp_plain_locale_begin(void) {
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return (vlp_plain_locale){plain, uselocale(plain)};
}

static inline void vlp_plain_locale_end(vlp_plain_locale locale) {
    uselocale(locale.before);
    if (locale.plain) freelocale(locale.plain);
}

#endif
