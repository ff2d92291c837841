/* Writes a plan as JSON. The keys are documented in docs/reference/plan.md; shard_plan_read.c reads
 * them. */
#include <math.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan.h"

static void text(cd_buf *b, const char *key, const char *v) {
    cd_buf_putf(b, "\"%s\": ", key);
    cd_buf_put_json_str(b, v, strlen(v));
}

static void real(cd_buf *b, const char *key, double v) {
    cd_buf_putf(b, ", \"%s\": ", key);
    cd_buf_put_json_real(b, v);
}

static void device(cd_buf *b, const char *key, const cd_shard_plan *p, uint32_t d) {
    cd_buf_puts(b, ", ");
    if (d < p->n_device) text(b, key, p->device[d]);
    else cd_buf_putf(b, "\"%s\": null", key);
}

static void put_parts(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_op *o) {
    cd_buf_puts(b, ", \"parts\": [");
    for (uint32_t i = 0; i < o->n_part; i++) {
        cd_buf_puts(b, i ? ", {" : "{");
        text(b, "device", p->device[o->part[i].device]);
        cd_buf_putf(b, ", \"lo\": %lld, \"hi\": %lld", (long long)o->part[i].lo,
                    (long long)o->part[i].hi);
        real(b, "seconds", o->part[i].seconds);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

/* The extent is not stored in the plan: shards cover the axis, so it is the end of the last one. */
static void put_op(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_op *o) {
    cd_buf_puts(b, "{");
    text(b, "name", o->name), cd_buf_puts(b, ", ");
    text(b, "type", o->type), cd_buf_puts(b, ", ");
    text(b, "key", o->key), cd_buf_puts(b, ", ");
    text(b, "dim", o->dim);
    if (o->dim[0])
        cd_buf_putf(b, ", \"reduce\": %s, \"way_op\": %u, \"axis\": %u, \"extent\": %lld",
                    o->reduce ? "true" : "false", o->way_op, o->axis,
                    (long long)o->part[o->n_part - 1].hi);
    put_parts(b, p, o);
    device(b, "join", p, o->join);
    real(b, "join_s", o->join_s);
    real(b, "seconds", o->seconds);
    real(b, "exchange_s", o->exchange_s);
    cd_buf_puts(b, ", \"alone_s\": [");
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (d) cd_buf_puts(b, ", ");
        cd_buf_put_json_real(b, o->alone_s[d]);
    }
    cd_buf_puts(b, "]");
    real(b, "ceiling", o->ceiling);
    cd_buf_puts(b, ", ");
    text(b, "why", o->why);
    cd_buf_puts(b, "}");
}

static void put_copy(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_copy *c) {
    cd_buf_putf(b, "{\"tensor\": %u", c->tensor);
    device(b, "from", p, c->from);
    device(b, "to", p, c->to);
    cd_buf_putf(b, ", \"bytes\": %lld", (long long)c->bytes);
    real(b, "seconds", c->seconds);
    cd_buf_putf(b, ", \"before\": %u}", c->before);
}

static void text_or_null(cd_buf *b, const char *key, const char *v) {
    cd_buf_puts(b, ", ");
    if (v) text(b, key, v);
    else cd_buf_putf(b, "\"%s\": null", key);
}

static void put_source(cd_buf *b, const char *name, const cd_shard_plan_source *s) {
    const char *sep = "";
    cd_buf_puts(b, "{");
    text(b, "device", name);
    text_or_null(b, "as", s->as);
    text_or_null(b, "model", s->model);
    cd_buf_putf(b, ", \"default_model\": %s", s->by_default ? "true" : "false");
    text_or_null(b, "host", s->host);
    text_or_null(b, "stand_in", s->stands);
    text_or_null(b, "stand_in_by", s->scaled ? "roofline" : NULL);
    cd_buf_putf(b, ", \"guessed\": %s", s->guessed ? "true" : "false");
    real(b, "stand_in_spread", s->stands_spread);
    real(b, "network_cost_spread", s->costs_spread);
    real(b, "left", s->left > 0 ? s->left : (double)NAN);
    real(b, "unlike_share", s->unlike);
    cd_buf_puts(b, ", \"unlike_reasons\": {");
    for (uint32_t k = 0; k < CD_N_UNLIKE; k++) {
        if (!(s->unlike_of[k] > 0)) continue;
        cd_buf_putf(b, "%s\"%s\": ", sep, cd_trained_on_reason(k));
        cd_buf_put_json_real(b, s->unlike_of[k]);
        sep = ", ";
    }
    cd_buf_puts(b, "}}");
}

/* Infinity and NaN are written as null; cd_shard_plan_read knows for each key which of them it
 * means. */
static void put_head(cd_buf *b, const cd_shard_plan *p) {
    cd_buf_puts(b, "{\"schema\": \"cdmpp.plan\", \"version\": 1,\n ");
    text(b, "network", p->network);
    cd_buf_putf(b, ", \"batch\": %lld, \"devices\": [", (long long)p->batch);
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (d) cd_buf_puts(b, ", ");
        cd_buf_put_json_str(b, p->device[d], strlen(p->device[d]));
    }
    cd_buf_puts(b, "],\n ");
    text(b, "verdict", p->verdict);
    cd_buf_putf(b, ", \"split\": %s, \"exact\": %s,\n \"rho\": ", p->split ? "true" : "false",
                p->exact ? "true" : "false");
    cd_buf_put_json_real(b, p->rho);
    real(b, "ceiling", p->ceiling);
    real(b, "predicted_s", p->predicted_s);
    real(b, "low_s", p->low_s);
    real(b, "high_s", p->high_s);
    text_or_null(b, "no_interval", p->no_interval);
    real(b, "bound_s", p->bound_s);
    real(b, "measured_s", p->measured_s);
    real(b, "others", p->others);
    real(b, "predicted_gain", p->predicted_gain);
    real(b, "measured_gain", p->measured_gain);
}

/* One line for each operator, copy and baseline, so that two plans can be compared line by line. */
void cd_shard_plan_write(const cd_shard_plan *p, cd_buf *b) {
    put_head(b, p);
    if (p->source) cd_buf_puts(b, ",\n \"sources\": [");
    for (uint32_t d = 0; p->source && d < p->n_device; d++)
        cd_buf_puts(b, d ? ",\n  " : "\n  "), put_source(b, p->device[d], &p->source[d]);
    if (p->source) cd_buf_puts(b, "]");
    cd_buf_puts(b, ",\n \"operators\": [");
    for (uint32_t k = 0; k < p->n_op; k++)
        cd_buf_puts(b, k ? ",\n  " : "\n  "), put_op(b, p, &p->op[k]);
    cd_buf_puts(b, "],\n \"copies\": [");
    for (uint32_t i = 0; i < p->n_copy; i++)
        cd_buf_puts(b, i ? ",\n  " : "\n  "), put_copy(b, p, &p->copy[i]);
    cd_buf_puts(b, "],\n \"baselines\": [");
    for (uint32_t i = 0; i < p->n_base; i++) {
        cd_buf_puts(b, i ? ",\n  {" : "\n  {");
        text(b, "name", p->base[i].name);
        real(b, "predicted_s", p->base[i].predicted_s);
        real(b, "measured_s", p->base[i].measured_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}\n");
}
