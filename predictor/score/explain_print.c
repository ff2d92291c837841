/* explain_print -- an explanation as text, and as one JSON object. */
#include <math.h>
#include <string.h>

#include "predictor/score/explain.h"

static double change(const cd_explanation *e, size_t g) {
    return e->group[g].latency_s / e->pred.latency_s - 1;
}

/* ---- text ---- */
static void head(cd_buf *b, const cd_explanation *e) {
    cd_buf_putf(b, "%.3e s on %s", e->pred.latency_s, e->device);
    if (!isnan(e->pred.low_s)) cd_buf_putf(b, " (%.3e to %.3e s)", e->pred.low_s, e->pred.high_s);
    if (e->pred.flags & CD_MODEL_OUT_OF_RANGE)
        cd_buf_putf(b, ", unlike what the model was trained on (%s)", e->unlike.text);
    cd_buf_putf(b, "\n%s\n\n", e->workload_key);
}

static void put_share(cd_buf *b, double share, double latency_s) {
    cd_buf_putf(b, "%6.1f %% %10.3e s", 100 * share, share * latency_s);
}

static void nest(cd_buf *b, const cd_explanation *e) {
    size_t l = 0;
    int32_t at = 0;
    cd_buf_puts(b, "   share      seconds   loop nest\n");
    for (const char *p = e->nest; *p; at++) {
        const size_t n = strcspn(p, "\n");
        if (l < e->n_leaf && e->leaf_line[l] == at)
            put_share(b, e->leaf_share[l++], e->pred.latency_s);
        else cd_buf_puts(b, "                     ");
        cd_buf_puts(b, "   ");
        cd_buf_put(b, p, n);
        cd_buf_puts(b, "\n");
        p += n + (p[n] == '\n');
    }
}

void cd_explain_text(cd_buf *b, const cd_explanation *e) {
    head(b, e);
    nest(b, e);
    cd_buf_puts(b, "\n   share      seconds   feature row\n");
    for (size_t r = 0; r < e->n_row; r++) {
        put_share(b, e->row_share[r], e->pred.latency_s);
        cd_buf_putf(b, "   %zu %s\n", r, e->buffer[r]);
    }
    if (!e->has_groups) return;
    cd_buf_puts(b,
                "\n  change      seconds   with this feature group as in the middle of training\n");
    for (size_t g = 0; g < CD_EXPLAIN_GROUPS; g++)
        cd_buf_putf(b, "%+6.0f %% %10.3e s   %s (%zu columns)\n", 100 * change(e, g),
                    e->group[g].latency_s, e->group[g].name, e->group[g].n_col);
}

/* ---- JSON ---- */
static void put_text(cd_buf *b, const char *key, const char *text) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, text, strlen(text));
    cd_buf_puts(b, ",");
}

static void put_real(cd_buf *b, const char *key, double v) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_real(b, v);
}

static void put_part(cd_buf *b, const cd_explanation *e, double share) {
    put_real(b, "share", share);
    cd_buf_puts(b, ",");
    put_real(b, "seconds", share * e->pred.latency_s);
    cd_buf_puts(b, "}");
}

static void put_groups(cd_buf *b, const cd_explanation *e) {
    cd_buf_puts(b, "\"groups\":");
    if (!e->has_groups) cd_buf_puts(b, "null");
    for (size_t g = 0; e->has_groups && g < CD_EXPLAIN_GROUPS; g++) {
        cd_buf_putf(b, "%s{\"group\":\"%s\",\"columns\":%zu,", g ? "," : "[", e->group[g].name,
                    e->group[g].n_col);
        put_real(b, "latency_s", e->group[g].latency_s);
        cd_buf_puts(b, ",");
        put_real(b, "change", change(e, g));
        cd_buf_puts(b, g + 1 < CD_EXPLAIN_GROUPS ? "}" : "}]");
    }
}

static void put_answer(cd_buf *b, const cd_explanation *e) {
    put_real(b, "latency_s", e->pred.latency_s);
    cd_buf_puts(b, ",");
    put_real(b, "low_s", e->pred.low_s);
    cd_buf_puts(b, ",");
    put_real(b, "high_s", e->pred.high_s);
    cd_buf_putf(b, ",\"out_of_range\":%s,",
                e->pred.flags & CD_MODEL_OUT_OF_RANGE ? "true" : "false");
    if (e->unlike.reason) put_text(b, "reason", e->unlike.text);
}

void cd_explain_json(cd_buf *b, const cd_explanation *e, const cd_predict_line *line) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.explain\",\"command\":\"cdmpp-predict\",");
    put_text(b, "file", line->source);
    cd_buf_putf(b, "\"line\":%ld,", line->number);
    put_text(b, "workload_key", e->workload_key);
    put_text(b, "device", e->device);
    put_answer(b, e);
    cd_buf_puts(b, "\"rows\":[");
    for (size_t r = 0; r < e->n_row; r++) {
        cd_buf_puts(b, r ? ",{" : "{");
        put_text(b, "buffer", e->buffer[r]);
        put_part(b, e, e->row_share[r]);
    }
    cd_buf_puts(b, "],\"leaves\":[");
    for (size_t l = 0; l < e->n_leaf; l++) {
        cd_buf_putf(b, "%s{\"row\":%d,\"nest_line\":%d,", l ? "," : "", e->leaf_row[l],
                    e->leaf_line[l] + 1);
        put_part(b, e, e->leaf_share[l]);
    }
    cd_buf_puts(b, "],");
    put_groups(b, e);
    cd_buf_puts(b, ",");
    put_text(b, "nest", e->nest);
    b->n -= !b->oom; /* its comma */
    cd_buf_puts(b, "}\n");
}
