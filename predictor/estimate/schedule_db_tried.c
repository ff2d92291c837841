/* The other measured records of a task: few of them, those with the smallest hashes, so that the
 * order of files and lines does not change which. */
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

enum { MOST = CD_SCHEDULE_DB_SLOWER + 1 }; /* the fastest is one of them, or not */

void cd_schedule_db_free_tried(cd_schedule_db_slot *e) {
    for (uint32_t i = 0; i < e->n_tried; i++) cd_mem_free(e->tried[i].line);
    cd_mem_free(e->tried);
    cd_mem_free(e->slower);
    e->tried = NULL;
    e->slower = NULL;
    e->n_tried = 0;
    e->of_tried = 0;
}

static bool room(cd_schedule_db_slot *e) {
    if (!e->tried) e->tried = cd_mem_zalloc(MOST, sizeof *e->tried);
    if (!e->slower) e->slower = cd_mem_zalloc(MOST, sizeof *e->slower);
    return e->tried && e->slower;
}

/* Length of a line without the origin that a database's file adds: with and without it, it is the
 * same record. */
static size_t without_origin(const char *p, size_t n) {
    static const char mark[] = ", \"origin\": ";
    for (size_t i = n; i-- > 0;)
        if (n - i >= sizeof mark - 1 && !memcmp(p + i, mark, sizeof mark - 1)) return i;
    while (n && p[n - 1] != '}') n--;
    return n ? n - 1 : 0;
}

static bool same_record(const char *a, size_t n, const char *b, size_t m) {
    n = without_origin(a, n);
    return n == without_origin(b, m) && !memcmp(a, b, n);
}

cdmpp_status cd_schedule_db_tried(cd_schedule_db_slot *e, cd_str line, cdmpp_err *err) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, line.p, without_origin(line.p, line.n));
    if (!room(e)) return CD_FAIL(err, ENOMEM, "records of a task");
    uint32_t at = e->n_tried;
    while (at && e->tried[at - 1].hash > h.a) at--;
    /* a file named twice, a log beside the database made of it */
    if (at && e->tried[at - 1].hash == h.a) return CDMPP_OK;
    if (at == MOST) {
        e->of_tried++;
        return CDMPP_OK;
    }
    char *copy = cd_mem_alloc(line.n + 1);
    if (!copy) return CD_FAIL(err, ENOMEM, "record of %zu bytes", line.n);
    if (line.n) memcpy(copy, line.p, line.n);
    copy[line.n] = 0;
    if (e->n_tried == MOST) cd_mem_free(e->tried[--e->n_tried].line);
    memmove(e->tried + at + 1, e->tried + at, (e->n_tried - at) * sizeof *e->tried);
    e->tried[at] = (cd_schedule_db_trial){h.a, copy, line.n};
    e->n_tried++;
    e->of_tried++;
    return CDMPP_OK;
}

void cd_schedule_db_show_slower(cd_schedule_db_slot *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_tried && n < CD_SCHEDULE_DB_SLOWER; i++)
        if (!same_record(e->tried[i].line, e->tried[i].len, e->line, e->s.len))
            e->slower[n++] = (cd_schedule_db_line){e->tried[i].line, e->tried[i].len};
    e->s.slower = e->slower;
    e->s.n_slower = n;
    e->s.of_slower = e->of_tried ? e->of_tried - 1 : 0;
}
