/* Writes records in TVM's own byte format: its blanks, six digits of a real number, only the fields
 * that the record's version has. A line that TVM wrote is written back byte for byte. */
#include "features/task/task_internal.h"

#include <math.h>

static void put_str(cd_buf *b, cd_str s) { cd_buf_put_json_str(b, s.p, s.n); }

static void put_list(cd_buf *b, const int32_t *list, uint32_t n) {
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(b, ", ");
        cd_buf_put_int(b, list[i]);
    }
    cd_buf_puts(b, "]");
}

static void put_step(cd_buf *b, const cd_record_step *s) {
    const int32_t *from = s->i;
    cd_buf_puts(b, "[\"");
    cd_buf_puts(b, cd_record_step_code(s->kind));
    cd_buf_puts(b, "\", ");
    cd_buf_put_int(b, s->stage);
    for (const char *sig = cd_record_step_args(s->kind); *sig; sig++) {
        cd_buf_puts(b, ", ");
        if (*sig == 's') put_str(b, s->s);
        else if (*sig == 'l' || *sig == 'f') put_list(b, s->list, s->n_list);
        else cd_buf_put_int(b, *from++);
    }
    cd_buf_puts(b, "]");
}

static void put_steps(cd_buf *b, const cd_record *r) {
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < r->n_step; i++) {
        if (i) cd_buf_puts(b, ", ");
        put_step(b, &r->step[i]);
    }
    cd_buf_puts(b, "]");
}

static void put_hardware(cd_buf *b, const cd_hardware *h) {
    const int64_t field[] = {h->num_cores,
                             h->vector_unit_bytes,
                             h->cache_line_bytes,
                             h->max_shared_memory_per_block,
                             h->max_local_memory_per_block,
                             h->max_threads_per_block,
                             h->max_vthread_extent,
                             h->warp_size};
    for (size_t i = 0; i < 8; i++) {
        cd_buf_puts(b, i ? ", " : ", [");
        cd_buf_put_int(b, field[i]);
    }
    cd_buf_puts(b, "]");
}

/* Only the fields that the record's version has. */
static void put_task(cd_buf *b, const cd_record *r) {
    cd_buf_puts(b, "[");
    put_str(b, r->workload_key);
    cd_buf_puts(b, ", ");
    put_str(b, r->target);
    if (r->has_hardware) put_hardware(b, &r->hardware);
    if (r->has_host) {
        cd_buf_puts(b, ", ");
        put_str(b, r->target_host);
    }
    if (r->has_layout) {
        cd_buf_puts(b, ", ");
        cd_buf_put_int(b, r->layout_rewrite);
    }
    if (r->has_inputs) {
        cd_buf_puts(b, ", [");
        for (uint32_t i = 0; i < r->n_input; i++) {
            if (i) cd_buf_puts(b, ", ");
            put_str(b, r->input[i]);
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]");
}

static cdmpp_status known_steps(const cd_record *r, cdmpp_err *err) {
    for (uint32_t i = 0; i < r->n_step; i++)
        if ((unsigned)r->step[i].kind >= CD_RECORD_STEP_COUNT)
            return CD_FAIL(err, EUNSUPPORTED, "step %u is of kind %d", i, (int)r->step[i].kind);
    return CDMPP_OK;
}

/* What the reader would refuse must not be written. */
static cdmpp_status writable(const cd_record *r, cdmpp_err *err) {
    if (r->has_host > r->has_hardware || r->has_layout > r->has_host ||
        r->has_inputs > r->has_layout)
        return CD_FAIL(err, ESCHEMA, "a field of the task is present without the one before it");
    if (!r->n_cost) return CD_FAIL(err, ESCHEMA, "expected at least one cost, found none");
    for (uint32_t i = 0; i < r->n_cost; i++)
        if (!(r->cost_s[i] >= 0 && r->cost_s[i] <= CD_RECORD_MAX_COST_S))
            return CD_FAIL(err, ERANGE, "cost %u is %g, outside [0, %g]", i, r->cost_s[i],
                           CD_RECORD_MAX_COST_S);
    if (!(fabs(r->total_s) <= CD_RECORD_MAX_TOTAL_S))
        return CD_FAIL(err, ERANGE, "total time is %g", r->total_s);
    return known_steps(r, err);
}

cdmpp_status cd_record_write_steps(cd_buf *b, const cd_record *r, cdmpp_err *err) {
    CD_TRY(known_steps(r, err));
    put_steps(b, r);
    return b->oom ? CD_FAIL(err, ENOMEM, "steps of a record") : CDMPP_OK;
}

/* The blanks are those of TVM's writer. */
cdmpp_status cd_record_write(cd_buf *b, const cd_record *r, cdmpp_err *err) {
    CD_TRY(writable(r, err));
    cd_buf_puts(b, "{\"i\": [");
    put_task(b, r);
    cd_buf_puts(b, ", [[], ");
    put_steps(b, r);
    cd_buf_puts(b, "]], \"r\": [[");
    for (uint32_t i = 0; i < r->n_cost; i++) {
        if (i) cd_buf_puts(b, ", ");
        cd_buf_put_real6(b, r->cost_s[i]);
    }
    cd_buf_puts(b, "], ");
    cd_buf_put_int(b, r->error_no);
    cd_buf_puts(b, ", ");
    cd_buf_put_real6(b, r->total_s);
    cd_buf_puts(b, ", ");
    cd_buf_put_int(b, r->timestamp);
    cd_buf_puts(b, "], \"v\": ");
    put_str(b, r->version);
    if (r->origin.n) {
        cd_buf_puts(b, ", \"origin\": ");
        put_str(b, r->origin);
    }
    cd_buf_puts(b, "}\n");
    return b->oom ? CD_FAIL(err, ENOMEM, "record of %zu bytes", b->n) : CDMPP_OK;
}
