/* Traces of the simulated queues, a file for each case. */
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/network_report/network_report_internal.h"

/* "t.json" of the second of several: "t.resnet-50.v100.4.json"; letters that are special in paths
 * become "_". */
static void path_of(const char *path, const cd_network_estimate_case *c, unsigned number,
                    cd_buf *b) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t n = dot ? (size_t)(dot - path) : strlen(path);
    cd_buf_put(b, path, n);
    cd_buf_puts(b, ".");
    cd_escape_file_name(b, (cd_str){c->source->name, strnlen(c->source->name, 80)});
    cd_buf_puts(b, ".");
    cd_escape_file_name(b, cd_str_of(c->device->label));
    if (c->source->batch) cd_buf_putf(b, ".%lld", (long long)c->source->batch);
    if (number > 1) cd_buf_putf(b, ".%u", number);
    cd_buf_puts(b, dot ? dot : "");
}

/* A path that no other case has: names may differ only in letters that became "_". */
static cdmpp_status own_path(const char *base, const cd_network_estimate_case *c, cd_dict *paths,
                             cd_buf *path, cdmpp_err *err) {
    for (unsigned k = 1;; k++) {
        const size_t before = paths->n;
        uint32_t id;
        cd_buf_clear(path);
        path_of(base, c, k, path);
        if (path->oom) return CD_FAIL(err, ENOMEM, "a path");
        CD_TRY(cd_dict_add(paths, (cd_str){path->p, path->n}, &id, err));
        if (paths->n > before) return CDMPP_OK;
    }
}

static cdmpp_status write_trace(const char *base, const cd_network_estimate_case *c, bool alone,
                                cd_dict *paths, cdmpp_err *err) {
    cd_buf path = {0}, b = {0};
    cdmpp_status st = alone ? CDMPP_OK : own_path(base, c, paths, &path, err);
    if (!st) st = cd_replay_trace(&b, &c->net->net, &c->replay, err);
    if (!st) st = cd_file_write(alone ? base : path.p, b.p, b.n, err);
    cd_buf_free(&path);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_network_report_trace(const cd_network_report *p, const char *path, cdmpp_err *err) {
    cd_dict paths = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < p->e->n_item; k++)
        if (!p->e->item[k].st)
            st = write_trace(path, &p->e->item[k], p->e->n_item == 1, &paths, err);
    cd_dict_free(&paths);
    return st;
}
