/* What a detection found: as a file of rules, and as a table. */
#include <string.h>

#include "base/text/text.h"
#include "profiler/detect/detect.h"

static void put_answer(cd_json_writer *w, const char *key, cd_fusion_answer a) {
    cd_json_write_key(w, key);
    if (a == CD_FUSION_UNKNOWN) cd_json_write_null(w);
    else cd_json_write_bool(w, a == CD_FUSION_FUSED);
}

static void put_figures(cd_json_writer *w, const cd_detect_test *t) {
    cd_json_write_member_real(w, "confidence", t->confidence);
    cd_json_write_member_real(w, "saving", t->saving);
    cd_json_write_member_real(w, "saving_low", t->saving_low);
    cd_json_write_member_real(w, "saving_high", t->saving_high);
    cd_json_write_member_real(w, "left_s", t->left_s);
    cd_json_write_member_real(w, "right_s", t->right_s);
    cd_json_write_member_real(w, "both_s", t->both_s);
    cd_json_write_member_int(w, "repeats", t->repeats);
    if (t->known != CD_FUSION_UNKNOWN) put_answer(w, "known", t->known);
}

cdmpp_status cd_detect_json(cd_buf *out, const cd_detect *d, const char *backend, cdmpp_err *err) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "schema", CD_FUSION_RULES_SCHEMA);
    cd_json_write_member_str(&w, "backend", backend);
    cd_json_write_member_real(&w, "alpha", d->alpha);
    cd_json_write_member_real(&w, "level", d->level);
    cd_json_write_key(&w, "rules");
    cd_json_write_open(&w, '[');
    for (const cd_detect_test *t = d->test; t < d->test + d->n; t++) {
        cd_json_write_open(&w, '{');
        if (t->before) cd_json_write_member_str(&w, "before", t->before);
        cd_json_write_member_str(&w, "first", t->first);
        cd_json_write_member_str(&w, "second", t->second);
        put_answer(&w, "fused", t->answer);
        if (t->why.code) cd_json_write_member_str(&w, "error", t->why.msg);
        else put_figures(&w, t);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
    return out->oom ? CD_FAIL(err, ENOMEM, "rules of fusion") : CDMPP_OK;
}

/* ---- the table ---- */

static void put_row(cd_buf *b, const cd_detect_test *t) {
    static const char *const word[] = {"undecided", "no", "yes"};
    cd_buf name = {0};
    cd_buf_putf(&name, "%s%s%s", t->before ? t->before : "", t->before ? "+" : "", t->first);
    cd_buf_putf(b, "%-30.30s %-18s %-9s ", name.p ? name.p : "",
                strcmp(t->second, CD_FUSION_RULES_MANY) ? t->second : "several readers",
                word[t->answer]);
    if (t->why.code) cd_buf_putf(b, "%s\n", t->why.msg);
    else
        cd_buf_putf(b, "%10.4f %7.2f %7.2f..%-6.2f %9.4f %9.4f %9.4f %7u%s\n", t->confidence,
                    t->saving, t->saving_low, t->saving_high, t->left_s * 1e3, t->right_s * 1e3,
                    t->both_s * 1e3, t->repeats,
                    t->answer && t->known && t->answer != t->known
                        ? "  wrong: the back end says otherwise"
                        : "");
    b->oom = b->oom || name.oom;
    cd_buf_free(&name);
}

cdmpp_status cd_detect_text(cd_buf *out, const cd_detect *d, cdmpp_err *err) {
    uint32_t count[3] = {0}, known = 0, right = 0;
    cd_buf_puts(out, "left                           right              fused     confidence  "
                     "saving   low..high     left ms  right ms   both ms repeats\n");
    for (const cd_detect_test *t = d->test; t < d->test + d->n; t++) {
        put_row(out, t);
        count[t->answer]++;
        known += t->known != CD_FUSION_UNKNOWN;
        right += t->known != CD_FUSION_UNKNOWN && t->known == t->answer;
    }
    cd_buf_putf(out, "%u tests: %u fused, %u apart, %u undecided\n", d->n, count[CD_FUSION_FUSED],
                count[CD_FUSION_APART], count[CD_FUSION_UNKNOWN]);
    if (known) cd_buf_putf(out, "as the back end says itself: %u of %u\n", right, known);
    return out->oom ? CD_FAIL(err, ENOMEM, "rules of fusion") : CDMPP_OK;
}
