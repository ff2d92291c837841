/* schedbook_tried -- the other measured records of a task: few of them, drawn so that no order of files or lines changes it. */
#include <string.h>

#include "base/hash.h"
#include "predictor/schedbookint.h"

enum { MOST = CD_SCHED_SLOWER + 1 }; /* the fastest is one of them, or not */

void cd_schedbook_free_tried(cd_sched_entry *e) {
    for (uint32_t i = 0; i < e->n_tried; i++) cd_free(e->tried[i].line);
    cd_free(e->tried);
    cd_free(e->slower);
    e->tried = NULL;
    e->slower = NULL;
    e->n_tried = 0;
    e->of_tried = 0;
}

static bool room(cd_sched_entry *e) {
    if (!e->tried) e->tried = cd_calloc(MOST, sizeof *e->tried);
    if (!e->slower) e->slower = cd_calloc(MOST, sizeof *e->slower);
    return e->tried && e->slower;
}

cdmpp_status cd_schedbook_tried(cd_sched_entry *e, cd_str line, cdmpp_err *err) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, line.p, line.n);
    if (!room(e)) return CD_FAIL(err, ENOMEM, "records of a task");
    uint32_t at = e->n_tried;
    while (at && e->tried[at - 1].hash > h.a) at--;
    if (at == MOST) {
        e->of_tried++;
        return CDMPP_OK;
    }
    char *copy = cd_malloc(line.n + 1);
    if (!copy) return CD_FAIL(err, ENOMEM, "record of %zu bytes", line.n);
    if (line.n) memcpy(copy, line.p, line.n);
    copy[line.n] = 0;
    if (e->n_tried == MOST) cd_free(e->tried[--e->n_tried].line);
    memmove(e->tried + at + 1, e->tried + at, (e->n_tried - at) * sizeof *e->tried);
    e->tried[at] = (cd_sched_tried){h.a, copy, line.n};
    e->n_tried++;
    e->of_tried++;
    return CDMPP_OK;
}

void cd_schedbook_show_slower(cd_sched_entry *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_tried && n < CD_SCHED_SLOWER; i++)
        if (e->tried[i].len != e->s.len || memcmp(e->tried[i].line, e->line, e->s.len) != 0) e->slower[n++] = (cd_sched_line){e->tried[i].line, e->tried[i].len};
    e->s.slower = e->slower;
    e->s.n_slower = n;
    e->s.of_slower = e->of_tried ? e->of_tried - 1 : 0;
}
