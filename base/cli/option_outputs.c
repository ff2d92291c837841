/* Files that a command writes are none of those that it reads: whoever mixes two names up keeps the
 * data. */
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"

/* "x.h5", and of "data.files=x.h5" what follows. */
static bool is_named(const char *text, const char *path) {
    const char *is = text ? strrchr(text, '=') : NULL;
    return text && (cd_file_same(text, path) || (is && cd_file_same(is + 1, path)));
}

static bool names(const cd_option *o, const void *to, const char *path) {
    const void *at = (const char *)to + o->offset;
    const cd_texts *all = at;
    if (o->kind == CD_OPTION_FLAG || o->kind == CD_OPTION_INT || o->kind == CD_OPTION_WORD)
        return false;
    if (!cd_option_is_list(o)) return is_named(*(const char *const *)at, path);
    for (size_t k = 0; k < all->n; k++)
        if (is_named(all->v[k], path)) return true;
    return false;
}

static cdmpp_status apart(const cd_command *c, const cd_option *o, const void *to,
                          const cd_cli_args *said, cdmpp_err *err) {
    const char *path = *(const char *const *)((const char *)to + o->offset);
    if (!path || !strcmp(path, "-")) return CDMPP_OK;
    for (size_t k = 0; k < said->operand.n; k++)
        if (cd_file_same(said->operand.v[k], path))
            return CD_FAIL(err, EUSAGE, "--%s would overwrite %s", o->name, path);
    for (size_t k = 0; k < c->n_row; k++) {
        const cd_option *other = &c->row[k];
        if (other->offset == o->offset || !names(other, to, path)) continue;
        if (other->kind == CD_OPTION_OUTPUT)
            return CD_FAIL(err, EUSAGE, "--%s and --%s name one file, %s", o->name, other->name,
                           path);
        return CD_FAIL(err, EUSAGE, "--%s would overwrite --%s %s", o->name, other->name, path);
    }
    return CDMPP_OK;
}

cdmpp_status cd_option_outputs_apart(const cd_command *c, const void *to, const cd_cli_args *said,
                                     cdmpp_err *err) {
    for (size_t k = 0; k < c->n_row; k++)
        if (c->row[k].kind == CD_OPTION_OUTPUT) CD_TRY(apart(c, &c->row[k], to, said, err));
    return CDMPP_OK;
}
