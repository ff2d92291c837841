/* An error as a member of a JSON line, the same in all streams. */
#include "predictor/serve/serve_internal.h"

#include <string.h>

void cd_error_line_put(cd_buf *b, const cdmpp_err *e) {
    cd_buf_putf(b, ",\"error\":{\"code\":\"%s\"", cdmpp_status_name(e->code));
    if (e->key[0]) {
        cd_buf_puts(b, ",\"key\":");
        cd_buf_put_json_str(b, e->key, strlen(e->key));
    }
    cd_buf_puts(b, ",\"message\":");
    cd_buf_put_json_str(b, e->msg, strlen(e->msg));
    cd_buf_puts(b, "}");
}
