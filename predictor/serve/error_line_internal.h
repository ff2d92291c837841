/* error_line -- the error of a line as members of its JSON object. Any thread. */
#ifndef CD_ERROR_LINE_INTERNAL_H
#define CD_ERROR_LINE_INTERNAL_H
#include "base/core/core.h"

/* ,"error":{"code":"EPARSE","key":"..","message":".."}; without "key" where there is none. */
void cd_error_line_put(cd_buf *b, const cdmpp_err *e);
#endif
