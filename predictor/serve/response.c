/* Prints answers as JSON and as CSV. */
#include "predictor/serve/serve_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 256 }; /* room for five numbers of at most 24 characters, with names */

static const struct {
    uint32_t flag;
    const char *name;
} names[] = {{CDMPP_FLAG_LOWERING_FAILED, "lowering_failed"},
             {CDMPP_FLAG_OUT_OF_RANGE, "out_of_range"},
             {CDMPP_FLAG_UNKNOWN_DEVICE, "unknown_device"},
             {CDMPP_FLAG_TRUNCATED, "truncated"}};

static void put_flags(cd_buf *b, uint32_t flags, const char *quote, const char *between) {
    bool any = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!(flags & names[k].flag)) continue;
        if (any) cd_buf_puts(b, between);
        cd_buf_puts(b, quote);
        cd_buf_puts(b, names[k].name);
        cd_buf_puts(b, quote);
        any = true;
    }
}

static void put_text(cd_buf *b, const char *text, int n) {
    if (n > 0) cd_buf_put(b, text, (size_t)n < NUMBERS ? (size_t)n : NUMBERS - 1);
}

static void put_numbers(cd_buf *b, const cd_scored *o) {
    const cd_model_prediction *p = &o->pred;
    char text[NUMBERS];
    put_text(b, text,
             snprintf(text, sizeof text, ",\"latency_s\":%.9g,\"score\":%.9g", p->latency_s,
                      cd_score_of(p->order_s)));
    if (isnan(p->low_s) && !(p->flags & CD_MODEL_OUT_OF_RANGE)) return; /* a model of version 1 */
    if (isnan(p->low_s)) {
        cd_buf_puts(b, ",\"low_s\":null,\"high_s\":null,\"rel_std\":null");
        return;
    }
    put_text(b, text,
             snprintf(text, sizeof text, ",\"low_s\":%.9g,\"high_s\":%.9g,\"rel_std\":%.4g",
                      p->low_s, p->high_s, p->rel_std));
}

static void put_costs(cd_buf *b, const cd_scored *o) {
    if (isnan(o->measured_s)) cd_buf_puts(b, ",\"measured_s\":null,\"rel_error\":null");
    else
        cd_buf_putf(b, ",\"measured_s\":%.9g,\"rel_error\":%.6g", o->measured_s,
                    o->pred.latency_s / o->measured_s - 1);
}

/* Written by hand, piece by piece: this is the inner loop of a stream of requests. */
void cd_response_json(cd_buf *b, const cd_response *a) {
    const cd_scored *o = a->o;
    if (a->id.n) {
        cd_buf_puts(b, "{\"id\":");
        cd_buf_put(b, a->id.p, a->id.n);
    } else {
        cd_buf_puts(b, "{\"line\":");
        cd_buf_put_int(b, a->line);
    }
    if (o->st) {
        cd_error_line_put(b, &o->err);
    } else {
        put_numbers(b, o);
        if (a->costs) put_costs(b, o);
        cd_buf_puts(b, ",\"flags\":[");
        put_flags(b, cd_score_flags(o, false), "\"", ",");
        cd_buf_puts(b, "]");
        if (o->unlike.reason) {
            cd_buf_puts(b, ",\"reason\":");
            cd_buf_put_json_str(b, o->unlike.text, strlen(o->unlike.text));
        }
        if (o->which.unknown) {
            cd_buf_puts(b, ",\"device\":");
            cd_buf_put_json_str(b, a->answered, strlen(a->answered));
        }
    }
    cd_buf_puts(b, "}\n");
}

/* The columns are those of CD_ANSWER_CSV_HEAD; an error leaves the numbers empty. */
void cd_response_csv(cd_buf *b, const cd_response *a) {
    const cd_scored *o = a->o;
    const cd_model_prediction *p = &o->pred;
    char text[NUMBERS];
    if (a->id.n) cd_csv_fields_put_bare(b, a->id.p, a->id.n);
    else cd_buf_put_int(b, a->line);
    if (o->st) {
        cd_buf_puts(b, ",,,,,,,");
        cd_buf_puts(b, cdmpp_status_name(o->err.code));
        cd_buf_puts(b, ",");
        cd_csv_fields_put_bare(b, o->err.msg, strlen(o->err.msg));
        cd_buf_puts(b, ",");
    } else {
        put_text(b, text,
                 snprintf(text, sizeof text, ",%.9g,%.9g,", p->latency_s, cd_score_of(p->order_s)));
        if (isnan(p->low_s)) cd_buf_puts(b, ",,,");
        else
            put_text(
                b, text,
                snprintf(text, sizeof text, "%.9g,%.9g,%.4g,", p->low_s, p->high_s, p->rel_std));
        put_flags(b, cd_score_flags(o, false), "", " ");
        cd_buf_puts(b, ",,,");
        cd_csv_fields_put_bare(b, o->unlike.text, strlen(o->unlike.text));
    }
    cd_buf_puts(b, "\n");
}
