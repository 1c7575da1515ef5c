#include "handlers.h"
void answer_map(http_handling *handling) {
    reply_error(handling->reply, 404, "not yet");
}
void answer_what_if(http_handling *handling) {
    reply_error(handling->reply, 404, "not yet");
}
